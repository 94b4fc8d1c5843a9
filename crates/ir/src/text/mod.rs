//! The text format of graphs, for fixtures and reports.
//!
//! ```
//! use regraft_ir::text;
//!
//! let graph = text::parse(
//!     "graph (x: f32[N,64]) {
//!        const w: f32[64,32]          ; data made from the name
//!        const s: f32[] = 0.5         ; given data; one number fills a tensor
//!        p = MatMul(x, w)
//!        q, r = Split(Mul(p, s), axis=1, sizes=[16, 16])
//!        output q, r as rest
//!      }",
//! )?;
//! assert_eq!(graph.outputs().len(), 2);
//! assert_eq!(text::print(&text::parse(&text::print(&graph))?), text::print(&graph));
//! # Ok::<(), text::ParseError>(())
//! ```
//!
//! * White space separates; `;` starts a comment that ends with the line.
//! * Types: `f32[N,64]`, `i64[]`. Sizes: numbers, symbols, `+ - *`, `floor(a, b)`, `broadcast(a,
//!   b)`.
//! * Attributes: `name=value` after the operands; a value is an integer, a float, `true`, `false`,
//!   `none`, a quoted word, an element type, a list of these or of sizes, or a tensor such as
//!   `f32[2](0.5, 1)`.
//! * Constants: `= number` (fills), `= [..]` (all elements, row-major), or nothing: pseudo-random
//!   data that depends on name and type, reals in `[-1, 1)`, integers 0 to 2, booleans.
//! * An operand is a name or a call with one result. Unused results may be called `_`.
//! * Operators that Regraft does not define: `y = opaque:Name(x, _, z) -> f32[N], ?`. `_` is an
//!   omitted input, `?` an unknown type. In another domain: `opaque:com.example::Name(..)`. Values
//!   captured by a subgraph follow a bar: `opaque:If(c | x)`. The attributes `id=` (identity, else
//!   counted from 0) and `why=` may follow.
//! * `output v as name` returns `v` under another name.
//! * A name that is not a plain word, or is a keyword of the format, is put in backquotes.

mod cursor;
mod inventory;
mod lexer;
mod literal;
mod names;
mod parse;
mod print;
mod value;

pub use cursor::{Cursor, Position};
pub use inventory::inventory;
pub use names::quoted;
pub use parse::{ParseError, parse, parse_first};
pub use print::print;
