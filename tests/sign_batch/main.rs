//! The main program, run like a user does.

mod behaviour;
mod errors;
#[path = "../common/example.rs"]
mod example;
mod keygen;
mod keys;
#[path = "../common/need.rs"]
mod need;
mod openssl;
#[cfg(unix)]
mod places;
mod program;
#[cfg(unix)]
mod same_file;
#[cfg(unix)]
mod signals;
mod streams;
mod verify;
