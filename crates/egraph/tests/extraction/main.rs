//! Extraction, held against brute force, and against itself under other orders of the nodes.

mod brute_force;
mod errors;
mod format;
mod methods;
mod random;
mod small;
