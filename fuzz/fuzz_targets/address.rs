//! URLs: any text is either an address that makes sense or a refusal, and neither shows a password.
#![no_main]

use acemq_core::address::Address;
use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;

/// Stands in a password, and must stand in no text of ours.
const MARK: &str = "Xyzzy-7";

#[derive(Arbitrary, Debug)]
enum Input<'a> {
    Raw(&'a str),
    /// Percent-encoded as it is to be.
    Parts {
        tls: bool,
        user: &'a str,
        password: &'a str,
        vhost: &'a str,
        port: u16,
    },
    /// What people write who have not read about percent-encoding.
    BarePassword(&'a str, &'a str, &'a str),
}

fuzz_target!(|input: Input| {
    match input {
        Input::Raw(text) => {
            sensible(text);
            sensible(&format!("amqp://{text}"));
            sensible(&format!("amqps://h?{text}"));
        }
        Input::Parts { tls, user, password, vhost, port } => parts(tls, user, password, vhost, port),
        Input::BarePassword(before, after, rest) => hides_its_password(before, after, rest),
    }
});

fn sensible(url: &str) {
    let Ok(address) = Address::parse(url) else { return };
    assert!(!address.hosts.is_empty());
    assert!(address.hosts.iter().all(|host| !host.name.is_empty() && host.port > 0));
    assert!(address.vhost.len() <= 255);
    assert_ne!(address.heartbeat, Some(0));
}

fn parts(tls: bool, user: &str, password: &str, vhost: &str, port: u16) {
    let scheme = if tls { "amqps" } else { "amqp" };
    let url = format!("{scheme}://{}:{}@h:{port}/{}", encoded(user), encoded(password), encoded(vhost));
    match Address::parse(&url) {
        Ok(address) => {
            assert_eq!((address.tls, address.user.as_str(), address.password.as_str()), (tls, user, password));
            assert_eq!((address.vhost.as_str(), address.hosts[0].port), (vhost, port));
        }
        Err(e) => assert!(port == 0 || vhost.len() > 255, "{e}"),
    }
}

/// Whatever stands around it, the password is shown neither by the refusal nor by the address.
fn hides_its_password(before: &str, after: &str, rest: &str) {
    let url = format!("amqp://user:{before}{MARK}{after}@{rest}");
    let shown = match Address::parse(&url) {
        Ok(address) => format!("{address:?}"),
        Err(e) => e.to_string(),
    };
    assert!(!shown.contains(MARK), "{url} says {shown}");
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
