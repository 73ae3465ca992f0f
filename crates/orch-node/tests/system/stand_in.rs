//! Systems that are gone over to like real ones, and that do what a test wants.

/// What a system does.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StandIn {
    /// What it is called.
    pub(crate) name: &'static str,
    /// Lines of shell that are run before it counts as the one that runs.
    pub(crate) before: &'static str,
    /// Lines that are run after.
    pub(crate) after: &'static str,
    /// Lines that are run when it is made what is booted, unless the machine was told to be quick.
    pub(crate) boot: &'static str,
    /// Its kernel.
    pub(crate) kernel: &'static str,
}

impl StandIn {
    pub(crate) const fn good(name: &'static str) -> Self {
        Self { name, before: "", after: "", boot: "", kernel: "linux" }
    }

    /// A script that lays it out in the folder that its first argument names.
    pub(crate) fn script(&self) -> String {
        let Self { name, before, after, boot, kernel } = self;
        format!(
            r#"set -e
mkdir -p "$1/bin" "$1/etc/systemd/system"
echo 'ExecStart={name}' > "$1/etc/systemd/system/web.service"
echo '{kernel}' > "$1/kernel"
cat > "$1/bin/switch-to-configuration" <<'END'
#!/bin/sh
here=$(readlink -f "$(dirname "$0")/..")
echo "$1 $here" >> /var/lib/orch/calls
case $1 in
test)
{before}
ln -sfn "$here" /run/current-system
echo "$here" > /var/lib/orch/activated
{after}
;;
boot)
if test -d /boot/loader; then echo "options init=$here/init" > /boot/loader/entries/one.conf; fi
test -e /var/lib/orch/quick || {{
:
{boot}
}}
;;
esac
END
chmod +x "$1/bin/switch-to-configuration"
"#
        )
    }
}
