//! A broker URL, taken apart: `amqp[s]://user:password@host:port[,host:port…]/vhost?parameters`.
//!
//! By the AMQP URI specification: percent-encoding everywhere, `+` is a plus, no path is the vhost `/`, and a
//! path of only a slash is the empty vhost. No error text ever holds more of the URL than a host or a parameter.

use crate::error::{Error, Result};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// One host to dial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// A name or an address, an IPv6 one without its brackets.
    pub name: String,
    pub port: u16,
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.contains(':') {
            write!(f, "[{}]:{}", self.name, self.port)
        } else {
            write!(f, "{}:{}", self.name, self.port)
        }
    }
}

/// Everything a URL says.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    pub tls: bool,
    pub hosts: Vec<Host>,
    pub user: String,
    pub password: String,
    pub vhost: String,
    /// Seconds.
    pub heartbeat: Option<u16>,
    pub connection_timeout: Option<Duration>,
    pub channel_max: Option<u16>,
    pub ca_file: Option<PathBuf>,
    pub cert_file: Option<PathBuf>,
    pub key_file: Option<PathBuf>,
    pub server_name: Option<String>,
}

/// Without the password, so that it can stand in a log line.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<String> = self.hosts.iter().map(Host::to_string).collect();
        let scheme = if self.tls { "amqps" } else { "amqp" };
        write!(f, "{scheme}://{}:***@{}/{}", self.user, hosts.join(","), self.vhost)
    }
}

const PARAMETERS: &str = "heartbeat, connection_timeout, channel_max, cacertfile, certfile, keyfile, \
     server_name_indication, verify, auth_mechanism";

impl Address {
    /// # Errors
    /// [`Kind::Config`](crate::Kind::Config) saying which part is wrong and what would be right.
    pub fn parse(url: &str) -> Result<Self> {
        let (tls, rest) = scheme(url)?;
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
        let (authority, path) = rest.split_once('/').map_or((rest, None), |(authority, path)| (authority, Some(path)));
        if path.into_iter().chain(query).any(|part| part.contains('@')) {
            return Err(Error::config(
                "the URL has a bare '@' behind its host; write it %40, and a '/', '?' or '@' of a password %2F, %3F, %40",
            ));
        }
        let (userinfo, hosts) = authority.rsplit_once('@').map_or((None, authority), |(u, h)| (Some(u), h));
        let (user, password) = credentials(userinfo)?;

        let mut address = Self {
            tls,
            hosts: hosts.split(',').map(|host| parse_host(host, tls)).collect::<Result<_>>()?,
            user,
            password,
            vhost: vhost(path)?,
            heartbeat: None,
            connection_timeout: None,
            channel_max: None,
            ca_file: None,
            cert_file: None,
            key_file: None,
            server_name: None,
        };
        for pair in query.into_iter().flat_map(|query| query.split('&')).filter(|pair| !pair.is_empty()) {
            address.parameter(pair)?;
        }
        Ok(address)
    }

    fn parameter(&mut self, pair: &str) -> Result<()> {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decode(value, "a parameter")?;
        match name {
            "heartbeat" => self.heartbeat = Some(heartbeat(&value)?),
            "connection_timeout" => self.connection_timeout = Some(milliseconds(&value)?),
            "channel_max" => self.channel_max = Some(number("channel_max", &value, 1, u16::MAX)?),
            "cacertfile" => self.ca_file = Some(value.into()),
            "certfile" => self.cert_file = Some(value.into()),
            "keyfile" => self.key_file = Some(value.into()),
            "server_name_indication" => self.server_name = Some(value),
            "verify" if value == "verify_peer" => {}
            "verify" => {
                return Err(Error::config(
                    "the URL says verify=verify_none (or something unknown); a certificate is always verified unless \
                     security: Security.without_verifying_the_broker(because: \"...\") says why it is not",
                ));
            }
            "auth_mechanism" if value.eq_ignore_ascii_case("plain") => {}
            "auth_mechanism" => return Err(Error::config("the URL parameter auth_mechanism can only be plain")),
            other => {
                return Err(Error::config(format!("the URL parameter {other:?} is unknown; known are {PARAMETERS}")));
            }
        }
        Ok(())
    }
}

fn scheme(url: &str) -> Result<(bool, &str)> {
    if let Some(rest) = url.strip_prefix("amqp://") {
        Ok((false, rest))
    } else if let Some(rest) = url.strip_prefix("amqps://") {
        Ok((true, rest))
    } else {
        Err(Error::config("a broker URL begins with amqp:// or amqps://, as in amqp://guest:guest@localhost:5672"))
    }
}

fn credentials(userinfo: Option<&str>) -> Result<(String, String)> {
    let Some(userinfo) = userinfo else { return Ok(("guest".into(), "guest".into())) };
    if userinfo.contains('#') || userinfo.contains('@') {
        return Err(Error::config("the user or password of the URL holds a bare '#' or '@'; write them %23 and %40"));
    }
    let (user, password) = userinfo.split_once(':').unwrap_or((userinfo, ""));
    Ok((decode(user, "the user")?, decode(password, "the password")?))
}

fn parse_host(text: &str, tls: bool) -> Result<Host> {
    let (name, port) = match text.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(Some((name, ""))) => (name, None),
        Some(Some((name, rest))) => (name, Some(rest.strip_prefix(':').ok_or_else(|| bad_port(rest))?)),
        Some(None) => return Err(Error::config("an IPv6 address of the URL has no closing bracket")),
        None => match text.split_once(':') {
            Some((_, port)) if port.contains(':') => {
                return Err(Error::config("an IPv6 address stands in brackets, as in amqp://[::1]:5672"));
            }
            Some((name, port)) => (name, Some(port)),
            None => (text, None),
        },
    };
    if name.is_empty() {
        return Err(Error::config("the URL names no host, as in amqp://localhost:5672"));
    }
    if name.contains(['#', ' ', '\\']) {
        return Err(Error::config(
            "the host of the URL holds a character no host has; a '#', '/' or '?' in a password is written %23, %2F, %3F",
        ));
    }
    let port = match port {
        Some(port) => port.parse().ok().filter(|port| *port > 0).ok_or_else(|| bad_port(port))?,
        None => {
            if tls {
                5671
            } else {
                5672
            }
        }
    };
    Ok(Host { name: decode(name, "the host")?, port })
}

/// The text is not shown: with a bare '/' or '#' in a password, what stands at the port is a piece of the password.
fn bad_port(_: &str) -> Error {
    Error::config(
        "the port of the URL is not a number from 1 to 65535 (a ':', '/', '?' or '#' in a password is written %3A, %2F, %3F, %23)",
    )
}

fn vhost(path: Option<&str>) -> Result<String> {
    let Some(path) = path else { return Ok("/".into()) };
    if path.contains('/') {
        return Err(Error::config("a vhost that holds a slash is written with %2F, as in amqp://host/team%2Fa"));
    }
    if path.contains('#') {
        return Err(Error::config("the URL holds a bare '#'; write it %23"));
    }
    let vhost = decode(path, "the vhost")?;
    if vhost.len() > 255 {
        return Err(Error::config(format!("the vhost is {} bytes long; AMQP carries 255 at most", vhost.len())));
    }
    Ok(vhost)
}

fn heartbeat(value: &str) -> Result<u16> {
    number("heartbeat", value, 1, u16::MAX).map_err(|e| {
        Error::config(format!(
            "{}, in seconds; leave it off for the broker's own (it cannot be switched off)",
            e.message()
        ))
    })
}

fn milliseconds(value: &str) -> Result<Duration> {
    number("connection_timeout", value, 1, 3_600_000)
        .map(|ms: u64| Duration::from_millis(ms))
        .map_err(|e| Error::config(format!("{}, in milliseconds", e.message())))
}

fn number<T: std::str::FromStr + PartialOrd + fmt::Display>(name: &str, value: &str, low: T, high: T) -> Result<T> {
    match value.parse::<T>() {
        Ok(n) if n >= low && n <= high => Ok(n),
        _ => Err(Error::config(format!(
            "the URL parameter {name} is {value:?}; it is a whole number from {low} to {high}"
        ))),
    }
}

/// Percent-decoding. The text itself is never shown: it may be a password.
fn decode(text: &str, what: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first != b'%' {
            bytes.push(first);
            rest = after;
            continue;
        }
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(byte.ok_or_else(|| {
            Error::config(format!(
                "{what} of the URL holds a '%' without two hex digits; a percent sign is written %25"
            ))
        })?);
        rest = &after[2..];
    }
    String::from_utf8(bytes).map_err(|_| Error::config(format!("{what} of the URL is not UTF-8 once decoded")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(url: &str) -> Address {
        Address::parse(url).unwrap()
    }

    fn problem(url: &str) -> String {
        Address::parse(url).unwrap_err().to_string()
    }

    #[test]
    fn the_shortest_url_means_the_usual() {
        let address = parse("amqp://h");
        assert_eq!((address.user.as_str(), address.password.as_str(), address.vhost.as_str()), ("guest", "guest", "/"));
        assert_eq!(address.hosts, vec![Host { name: "h".into(), port: 5672 }]);
        assert_eq!(parse("amqps://h").hosts[0].port, 5671);
    }

    #[test]
    fn everything_is_percent_decoded_and_a_plus_is_a_plus() {
        let address = parse("amqp://us%40er:p+w%2F%40%3A%23%C3%A9%25@h:1/team%2Fa");
        assert_eq!(address.user, "us@er");
        assert_eq!(address.password, "p+w/@:#é%");
        assert_eq!(address.vhost, "team/a");
    }

    #[test]
    fn an_empty_password_and_an_empty_vhost_are_kept() {
        let address = parse("amqp://user:@h/");
        assert_eq!((address.password.as_str(), address.vhost.as_str()), ("", ""));
    }

    #[test]
    fn several_hosts_and_ipv6() {
        let hosts: Vec<String> =
            parse("amqp://a:1,[::1]:2,[fe80::1%25eth0],c").hosts.iter().map(Host::to_string).collect();
        assert_eq!(hosts, ["a:1", "[::1]:2", "[fe80::1%eth0]:5672", "c:5672"]);
    }

    #[test]
    fn parameters() {
        let address =
            parse("amqps://h?heartbeat=5&connection_timeout=3000&cacertfile=%2Fca.pem&server_name_indication=b");
        assert_eq!(address.heartbeat, Some(5));
        assert_eq!(address.connection_timeout, Some(Duration::from_secs(3)));
        assert_eq!(address.ca_file, Some("/ca.pem".into()));
        assert_eq!(address.server_name.as_deref(), Some("b"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (url, part) in [
            ("http://h", "amqp://"),
            ("amqp://h?heartbeat=0", "heartbeat"),
            ("amqp://h?heartbeat=70000", "heartbeat"),
            ("amqp://h?connection_timeout=5s", "connection_timeout"),
            ("amqp://h?hartbeat=5", "hartbeat"),
            ("amqps://h?verify=verify_none", "because"),
            ("amqp://h:0", "port"),
            ("amqp://", "no host"),
            ("amqp://::1", "brackets"),
            ("amqp://h/a/b", "%2F"),
            ("amqp://u:p%zz@h", "%25"),
        ] {
            assert!(problem(url).contains(part), "{url}: {}", problem(url));
        }
    }

    #[test]
    fn no_text_holds_the_password() {
        for url in [
            "amqp://u:se#cret@h",
            "amqp://u:se/cret@h",
            "amqp://u:se?cret@h",
            "amqp://u:se@cret@h",
            "amqp://u:se%cret@h",
            "amqp://u:12/cret@h",
            "amqp://u:12?cret@h",
            "amqp://u:12?x=/cret@h",
            "amqp://u:@se/cret@h",
        ] {
            let problem = problem(url);
            assert!(!problem.contains("cret"), "{url}: {problem}");
        }
        assert!(!format!("{:?}", parse("amqp://u:secret@h")).contains("secret"));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(url in "\\PC{0,60}") {
            let _ = Address::parse(&url);
            let _ = Address::parse(&format!("amqp://{url}"));
        }

        #[test]
        fn any_password_comes_back(password in "\\PC{0,20}") {
            let encoded: String = password.bytes().map(|b| format!("%{b:02x}")).collect();
            prop_assert_eq!(parse(&format!("amqp://u:{encoded}@h/v")).password, password);
        }
    }
}
