# Sourced by bin/setup: what this project needs from the operating system.
# shellcheck shell=bash

# shellcheck disable=SC2034
RUBY_PACKAGES="ruby ruby-dev ruby-bundler rake ruby-rspec rubocop yard build-essential libclang-dev git
  ruby-activejob ruby-activerecord ruby-railties ruby-sqlite3 ruby-pg ruby-mysql2 ruby-bunny puma"

# server_packages SERVER...: their packages, less those of a server that the environment names.
server_packages() {
  local server
  for server in "$@"; do
    case $server in
      rabbitmq) [ -n "${ACEMQ_TEST_AMQP_URL:-}" ] || printf 'rabbitmq-server ' ;;
      postgres) [ -n "${ACEMQ_TEST_POSTGRES_URL:-}" ] || printf 'postgresql ' ;;
      mariadb) [ -n "${ACEMQ_TEST_MARIADB_URL:-}" ] || printf 'mariadb-server-core mariadb-client-core ' ;;
      pgbouncer) printf 'pgbouncer ' ;; # of ours, before whichever PostgreSQL it is
    esac
  done
}

missing_packages() {
  local package
  for package in "$@"; do
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || printf '%s ' "$package"
  done
}

install_packages() {
  local missing
  missing=$(missing_packages "$@")
  [ -n "$missing" ] || return 0

  say "Debian packages to install: $missing"
  if [ "$(id -u)" -ne 0 ]; then
    say "That needs root. Run this, then try again:"
    say "  sudo apt-get update && sudo apt-get install $missing"
    return 1
  fi
  step "Reading the package lists" apt-get update || return 1
  # shellcheck disable=SC2086
  step "Installing the packages (some minutes the first time)" without_starting_services \
    env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing
}

# A freshly installed database or broker would start as a service of the machine, on its public port.
# The project starts its own; a policy that is already there is left alone.
without_starting_services() {
  local policy=/usr/sbin/policy-rc.d status=0
  [ -e "$policy" ] && { "$@"; return; }
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod +x "$policy"
  trap 'rm -f /usr/sbin/policy-rc.d' EXIT
  "$@" || status=$?
  rm -f "$policy"
  trap - EXIT
  return "$status"
}

# Without apt: say what must be there.
explain_packages() {
  local tool missing=""
  for tool in ruby bundle make cc git; do
    command -v "$tool" >/dev/null || missing="$missing $tool"
  done
  if [ -n "$missing" ]; then
    say "Not found:$missing. This machine has no apt-get, so install by its own means: Ruby 3.1 or newer with its"
    say "headers, Bundler, make, a C compiler, libclang, and git; for the servers RabbitMQ, PostgreSQL with PgBouncer, and MariaDB"
    say "(or name running ones with ACEMQ_TEST_AMQP_URL, ACEMQ_TEST_POSTGRES_URL, ACEMQ_TEST_MARIADB_URL)."
    return 1
  fi
}
