# Sourced by bin/test: the specs inside a Debian 13, made with debootstrap in a folder of its own.
# shellcheck shell=bash
#
# A copy of the checkout stands there under the same path, so that cargo finds nothing to compile again but what
# depends on Ruby. Rust is this machine's. Everything is mounted in a namespace of its own and gone when it ends.

DEBIAN13_FOLDER=${ACEMQ_DEBIAN13:-$ROOT/tmp/debian13}

# debian13 [RSPEC ARGUMENTS...]: 69 where no Debian 13 can be made
debian13() {
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null || ! unshare --mount true; then
    say "bin/test --debian13 makes a Debian 13 with debootstrap, which needs root on a Debian, and leave to mount."
    return 69
  fi
  install_packages debootstrap || return 69
  [ -e "$DEBIAN13_FOLDER/.made" ] || step "Making a Debian 13 in $DEBIAN13_FOLDER" debian13_make || return 69
  step "Copying the checkout there" debian13_copy || return 1
  unshare --mount --propagation private bash -c '. bin/support/debian13_inside.sh' - "$DEBIAN13_FOLDER" "$@"
}

debian13_make() {
  rm -rf "$DEBIAN13_FOLDER" && mkdir -p "$DEBIAN13_FOLDER" || return 1
  # From where this machine has its packages.
  local mirror
  mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -v security | head -n 1)
  debootstrap --variant=minbase --include=ca-certificates trixie "$DEBIAN13_FOLDER" "$mirror" || return 1
  # Nothing here must outlive a power cut.
  echo force-unsafe-io >"$DEBIAN13_FOLDER/etc/dpkg/dpkg.cfg.d/unsafe-io"
  touch "$DEBIAN13_FOLDER/.made"
}

# What git knows and what is new, as it stands; and what cargo has built.
debian13_copy() {
  local there=$DEBIAN13_FOLDER$ROOT
  mkdir -p "$there/target/debug" || return 1
  find "$there" -mindepth 1 -maxdepth 1 ! -name target ! -name tmp -exec rm -rf {} +
  git ls-files -z --cached --others --exclude-standard | xargs -0 ls -d 2>/dev/null | tar -cf - -T - | tar -xf - -C "$there" || return 1
  [ -e "$there/target/debug/deps" ] && return
  for part in deps build .fingerprint; do
    [ ! -e "target/debug/$part" ] || cp -a "target/debug/$part" "$there/target/debug/" || return 1
  done
}
