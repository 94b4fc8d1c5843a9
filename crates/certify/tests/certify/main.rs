//! Certificates, replayed and forged.

mod effects;
mod models;
mod replaying;
mod signatures;
mod tampering;
