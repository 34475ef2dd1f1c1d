# Run by debian13.sh in a mount namespace of its own: FOLDER [RSPEC ARGUMENTS...]
# shellcheck shell=bash
set -uo pipefail
folder=$1
shift
cargo_home=${CARGO_HOME:-$HOME/.cargo} rustup_home=${RUSTUP_HOME:-$HOME/.rustup}

mount_at() {
  mkdir -p "$folder$1" && mount --rbind "$1" "$folder$1"
}

mount -t proc proc "$folder/proc" || exit 1
mount_at /dev && mount_at /sys || exit 1
for home in "$cargo_home" "$rustup_home"; do
  [ ! -d "$home" ] || mount_at "$home" || exit 1
done
cp /etc/resolv.conf "$folder/etc/resolv.conf" 2>/dev/null

exec chroot "$folder" env -i HOME="$HOME" PATH="$cargo_home/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
  LANG=C.UTF-8 CARGO_HOME="$cargo_home" RUSTUP_HOME="$rustup_home" ACEMQ_LONG="${ACEMQ_LONG:-}" TMPDIR=/tmp \
  bash -c 'cd "$1" && shift && exec bin/test --specs "$@"' - "$PWD" "$@"
