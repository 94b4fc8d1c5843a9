//! A rule: source patterns, target, guards, numeric class, and how to make random instances of it.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use regraft_ir::{OpKind, Trust};

use crate::expr::{Expr, Val};

/// Index of a variable in a rule's environment.
pub type Var = usize;

/// How floating-point results of the two sides may differ, though they are equal over the reals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Numeric {
    /// Bit for bit, or up to the sign of zero.
    Exact,
    /// Sums or products are taken in another order.
    Reassociates,
    /// Constants are combined ahead of time and rounded once.
    RoundsConstants,
    /// A fast bilinear algorithm (Winograd): about 1e-5 relative, growing with the tile.
    FastBilinear,
}

impl Numeric {
    /// All classes with their names.
    pub const NAMES: [(&'static str, Numeric); 4] = [
        ("exact", Numeric::Exact),
        ("reassociates", Numeric::Reassociates),
        ("rounds-constants", Numeric::RoundsConstants),
        ("fast-bilinear", Numeric::FastBilinear),
    ];
}

impl fmt::Display for Numeric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Numeric::NAMES.iter().find(|(_, n)| n == self).map_or("?", |(name, _)| name))
    }
}

impl FromStr for Numeric {
    type Err = String;

    fn from_str(name: &str) -> Result<Numeric, String> {
        let found = Numeric::NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, numeric)| *numeric).ok_or_else(|| format!("`{name}` is no numeric class"))
    }
}

/// A pattern that a source consists of.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// `?x`: any value; the same value wherever it is repeated.
    Any(Var),
    /// `(const ?c)`: any value that depends on constants only.
    Constant(Var),
    /// `?b?`: an optional last operand.
    Optional(Var),
    /// `?xs...`: all remaining operands.
    Rest(Var),
    /// `(each P)`: all remaining operands, each matching `P`; the variables of `P` become lists.
    Each(Box<Pattern>, Vec<Var>),
    /// `(elementwise ?f :axis E P)`: operators that act on each element of a value that matches
    /// `P`, with constants that vary along one axis alone.
    Elementwise(Var, Expr, Box<Pattern>),
    /// A number: a constant whose elements all have this value, to float precision.
    Number(f64),
    /// An operator.
    Node(NodePattern),
}

/// An operator in a source.
#[derive(Clone, Debug)]
pub struct NodePattern {
    /// Which operator.
    pub kind: OpKind,
    /// `(as ?n ..)`: the variable bound to its result.
    pub bind: Option<Var>,
    /// Which result is meant, for operators with several.
    pub port: Expr,
    /// Conditions on attributes, or variables that take their values.
    pub attrs: Vec<(String, Expr)>,
    /// Operands.
    pub operands: Vec<Pattern>,
}

impl Pattern {
    /// Whether it binds or reads this variable.
    fn mentions(&self, var: Var) -> bool {
        let reads = |e: &Expr| e.mentions(&|v| *v == var);
        match self {
            Pattern::Any(v) | Pattern::Constant(v) | Pattern::Optional(v) | Pattern::Rest(v) => *v == var,
            Pattern::Each(inner, _) => inner.mentions(var),
            Pattern::Elementwise(v, axis, inner) => *v == var || reads(axis) || inner.mentions(var),
            Pattern::Number(_) => false,
            Pattern::Node(node) => {
                let mut attrs = node.attrs.iter().map(|(_, e)| e);
                node.bind == Some(var) || reads(&node.port) || attrs.any(reads) || node.operands.iter().any(|p| p.mentions(var))
            }
        }
    }
}

/// What a target builds.
#[derive(Clone, Debug)]
pub enum Target {
    /// A value bound in the source or by `let`; an absent optional yields no operand, a list is
    /// spliced.
    Use(Var),
    /// `(each (?x ?y) T)`: `T` once for every element of the lists.
    Each(Vec<Var>, Box<Target>),
    /// `(repeat ?i LIST T)`: `T` once for every item of a computed list.
    Repeat(Var, Expr, Box<Target>),
    /// `(with ?v T BODY)`: `BODY`, where `?v` stands for the value of `T`, or for the list of its
    /// values; for parts of a `repeat`, which `let` cannot name.
    With(Var, Box<Target>, Box<Target>),
    /// An operator; attributes are copied from `like` and then overridden.
    Node {
        /// Which operator.
        kind: OpKind,
        /// The variable of a matched operator of the same kind.
        like: Option<Var>,
        /// Attributes as expressions.
        attrs: Vec<(String, Expr)>,
        /// Operands.
        operands: Vec<Target>,
    },
    /// `(apply ?f T FROM TO)`: the operators of an `elementwise`, on a part of what they acted on.
    Apply(Var, Box<Target>, Box<[Expr; 2]>),
    /// `(shift ?f FROM TO)`: a part of the constant that an `elementwise` adds to its operand
    /// before anything else; only where `(shifts ?f)`.
    Shift(Var, Box<[Expr; 2]>),
    /// `(unshifted ?f T FROM TO)`: the same as `apply`, without that addition if there is one.
    Unshifted(Var, Box<Target>, Box<[Expr; 2]>),
    /// `(combine ROWS T..)`: the values of `T..`, and sums of them and of the sums before, with
    /// these rows of coefficients.
    Combine(Expr, Vec<Target>),
    /// `(out k T)`: another result of an operator.
    Out(Expr, Box<Target>),
    /// `(scalar E ?x)`: a scalar constant with the element type of `?x`.
    Scalar(Expr, Var),
    /// `(tensor SHAPE DATA ?x)`: a constant with the element type of `?x`.
    Tensor(Expr, Expr, Var),
    /// `(ints LIST)`: integers as an `i64` vector, constant if all are known.
    Ints(Expr),
    /// `(counted N)`: the integers from 0 to before `N` as an `i64` vector, constant if `N` is
    /// known.
    Counted(Expr),
    /// `(fill SHAPE E ?x)`: a constant-of-shape with the element type of `?x`.
    Fill(Expr, Expr, Var),
    /// `(vector N T)`: a value of `N` elements or one, as a vector of `N` elements.
    Vector(Expr, Box<Target>),
    /// `(item E ?xs)`: one tensor of a list; negative counts from the end.
    Item(Expr, Var),
    /// `(if C T [E])`: `T` if `C` holds, else `E`, or no operand.
    If(Expr, Box<Target>, Option<Box<Target>>),
}

/// How to make random instances: parameters with their choices, and shapes of the source's
/// variables over them.
#[derive(Clone, Debug, Default)]
pub struct Instance {
    /// `(n 1 2 3)`: a parameter and its choices, which may use earlier parameters.
    pub parameters: Vec<(Var, Vec<Expr>)>,
    /// `(vary n 1 2 3)`: parameters drawn again for every item of an `each`.
    pub varying: Vec<Var>,
    /// `(size n c)`: parameters whose choices are all sizes up to a bound.
    pub sizes: Vec<Var>,
    /// `(fixed s 1 2)`: parameters that stay numbers where other sizes are symbols.
    pub fixed: Vec<Var>,
    /// `(mirror (h s) (w t))`: lists of parameters that the rule treats alike, so that swapping
    /// their values gives the same instance.
    pub mirrors: Vec<(Vec<Var>, Vec<Var>)>,
    /// `(within E..)`: further sizes that must not exceed the bound.
    pub within: Vec<Expr>,
    /// `(?x f32 n c h)`: a variable's shape; or the choices of an attribute variable or of a
    /// literal constant's shape.
    pub operands: Vec<(Var, Operand)>,
    /// `(:op.attr CHOICE...)`: choices for an attribute that the source leaves open.
    pub attrs: Vec<(String, Vec<Expr>)>,
}

/// How a variable is filled in a random instance.
#[derive(Clone, Debug)]
pub enum Operand {
    /// An input or constant of this shape.
    Tensor {
        /// A weight rather than an input.
        constant: bool,
        /// Sizes.
        shape: Vec<Expr>,
        /// How its elements are chosen.
        values: Values,
        /// Element type.
        dtype: regraft_ir::DType,
    },
    /// A list variable: as many tensors as the first expression says.
    List(Expr, Box<Operand>),
    /// An attribute variable: one of these.
    Choice(Vec<Expr>),
    /// An optional operand: absent half of the time.
    Optional(Box<Operand>),
    /// Inside `each`: one operand for all items rather than one for each.
    Same(Box<Operand>),
}

/// Elements of a random operand.
#[derive(Clone, Debug)]
pub enum Values {
    /// Around zero, zeros and negative numbers included.
    Normal,
    /// Strictly positive (variances, scales under roots).
    Positive,
    /// One value everywhere.
    Splat(Expr),
    /// These elements, from a list (constants only).
    Data(Expr),
    /// Integers below a bound, a few of them out of range.
    Index(Expr),
}

/// One rewrite rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Unique kebab-case name.
    pub name: Arc<str>,
    /// File it came from.
    pub file: Arc<str>,
    /// Line of its definition, from 1.
    pub line: usize,
    /// The algebra: comment lines above the rule.
    pub algebra: Vec<String>,
    /// Why and when, for `rules explain`.
    pub doc: String,
    /// Source text, for `rules explain`.
    pub text: String,
    /// Source patterns; more than one must share a variable with an earlier one.
    pub source: Vec<Pattern>,
    /// `where` bindings, in order: expressions over the match.
    pub wheres: Vec<(Var, Expr)>,
    /// `let` bindings, in order.
    pub lets: Vec<(Var, Target)>,
    /// One target per source.
    pub target: Vec<Target>,
    /// What the algebra requires: all must hold.
    pub guards: Vec<Expr>,
    /// When the rule may pay off: all must hold for it to be applied, but the algebra needs none of
    /// them.
    pub profitable: Vec<Expr>,
    /// Numeric class.
    pub numeric: Numeric,
    /// Trust.
    pub trust: Trust,
    /// The only target runtime it is meant for, if not for all.
    pub runtime: Option<String>,
    /// Interior values may have other readers: the matched operators then stay in the graph.
    pub shared: bool,
    /// A rewrite between equivalent forms whose benefit only a measurement can tell.
    pub explore: bool,
    /// Rules that prepare sources of an exploratory one.
    pub prepared_by: Vec<String>,
    /// Names of variables, by index.
    pub variables: Vec<String>,
    /// Random instances.
    pub instance: Instance,
    /// Deprecated words in its text, each with its position and the current word.
    pub hints: Vec<String>,
}

impl Rule {
    /// The same rule, applied wherever it holds, whether it may pay off or not.
    pub(crate) fn anywhere(&self) -> Rule {
        Rule { profitable: Vec::new(), ..self.clone() }
    }

    /// True if a guard or a name asks for the readers of a value, so that readers of the operands
    /// matter too.
    pub fn asks_for_readers(&self) -> bool {
        self.asks(&["users", "output", "read-only-by"])
    }

    /// True if a guard or a name calls one of these functions.
    pub fn asks(&self, functions: &[&str]) -> bool {
        let mut asked = self.guards.iter().chain(&self.profitable).chain(self.wheres.iter().map(|(_, e)| e));
        asked.any(|expr| expr.calls(functions))
    }

    /// The variable `?k` of a rule from `(out ?k P)` to `(out ?k T)` that holds whichever result is
    /// meant: all results that are read change at once.
    pub(crate) fn any_result(&self) -> Option<Var> {
        let ([Pattern::Node(root)], [Target::Out(Expr::Var(result), _)]) = (self.source.as_slice(), self.target.as_slice()) else {
            return None;
        };
        let is_meant = matches!(&root.port, Expr::Var(port) if port == result);
        let conditions = self.guards.iter().chain(&self.profitable).chain(self.wheres.iter().map(|(_, e)| e));
        let mut elsewhere = root.attrs.iter().map(|(_, e)| e).chain(conditions);
        let is_tied = elsewhere.any(|e| e.mentions(&|v| v == result)) || root.operands.iter().any(|p| p.mentions(*result));
        (is_meant && !is_tied && self.lets.is_empty()).then_some(*result)
    }

    /// A digest of the rule's content and of its instances, independent of its position and layout.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = rustc_hash::FxHasher::default();
        format!("{:?}", (&self.source, &self.wheres, &self.lets, &self.target, &self.guards, &self.instance)).hash(&mut hasher);
        hasher.finish()
    }

    /// A digest of its name and its text, which a proof is about.
    pub fn digest(&self) -> u128 {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.name.as_bytes());
        hasher.update(&[0]);
        hasher.update(self.text.as_bytes());
        let mut short = [0; 16];
        short.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        u128::from_be_bytes(short)
    }

    /// Values of an empty environment.
    pub(crate) fn environment(&self) -> Vec<Option<Val>> {
        vec![None; self.variables.len()]
    }
}
