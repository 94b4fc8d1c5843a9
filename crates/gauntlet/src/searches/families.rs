//! Families of rules that differ in how one rewrite makes another possible, and the operators that
//! random graphs are made of for each.

use regraft_ir::SplitMix64;
use regraft_rules::{Library, parse, reaches};

use super::draft::{Draft, Form, Value};

/// Rules, and the graphs to try them on.
pub struct Family {
    /// What they have in common.
    pub name: &'static str,
    rules: &'static str,
    /// What graphs are made of; a form that is listed twice is drawn twice as often.
    forms: &'static [Form],
}

/// Most columns of a value: joins do not go beyond.
const WIDEST: usize = 8;

/// A rewrite takes away a node between two others, an operand, or a reader.
const FUSION: &str = "
    (rule drop-identity (identity ?x) => ?x (numeric exact))
    (rule negate-twice (neg (neg ?x)) => ?x (numeric exact))
    (rule abs-of-neg (abs (neg ?x)) => (abs ?x) (numeric exact))
    (rule relu-twice (relu (relu ?x)) => (relu ?x) (numeric exact))
    (rule relu-of-abs (relu (abs ?x)) => (abs ?x) (numeric exact))
    (rule abs-of-relu (abs (relu ?x)) => (relu ?x) (numeric exact))
    (rule add-negative (add ?x (neg ?y)) => (sub ?x ?y) (numeric exact))
    (rule subtract-negative (sub ?x (neg ?y)) => (add ?x ?y) (numeric exact))
    (rule negate-difference (neg (sub ?x ?y)) => (sub ?y ?x) (numeric exact))
    (rule nothing-left (mul (sub ?x ?x) ?y) => (sub ?x ?x) (numeric exact))";

/// Two operators that share an operand become one, whose result is split; a path goes where the two
/// no longer depend on what their source did.
const MERGES: &str = "
    (rule merge-products (all (matmul ?x (const ?v)) (matmul ?x (const ?w))) => (all (out 0 ?p) (out 1 ?p))
      (let (?p (split (matmul ?x (concat ?v ?w :axis 1)) :axis 1 :sizes (list (dim ?v 1) (dim ?w 1))))) (numeric exact))
    (rule merge-sums (all (as ?a (add ?x ?y)) (as ?b (add ?x ?z))) => (all (out 0 ?p) (out 1 ?p))
      (let (?p (split (add (concat ?x ?x :axis 1) (concat ?y ?z :axis 1)) :axis 1 :sizes (list (dim ?x 1) (dim ?x 1)))))
      (when (before ?a ?b)) (numeric exact))
    (rule merge-readers (all (as ?a (relu ?x)) (as ?b (neg ?x))) => (all ?r (sub ?r (abs ?x))) (let (?r (max ?x (sub ?x ?x)))) (numeric exact))
    (rule part-of-join (out ?k (split (concat :axis ?a ?xs...) :axis ?a :sizes ?s)) => (item ?k ?xs)
      (when (= ?s (for ?x ?xs (dim ?x ?a)))) (shared) (numeric exact))
    (rule take-back (add (sub ?x ?y) ?y) => ?x (numeric exact))
    (rule square (mul ?x ?x) => (mul (abs ?x) (abs ?x)) (numeric exact))";

/// Associativity, commutativity and distributivity, whose ways lead back and meet.
const ALGEBRA: &str = "
    (rule associate-sum (add (add ?x ?y) ?z) => (add ?x (add ?y ?z)) (numeric reassociates))
    (rule associate-product (mul (mul ?x ?y) ?z) => (mul ?x (mul ?y ?z)) (numeric reassociates))
    (rule factor (add (mul ?x ?y) (mul ?x ?z)) => (mul ?x (add ?y ?z)) (numeric reassociates))
    (rule expand (mul ?x (add ?y ?z)) => (add (mul ?x ?y) (mul ?x ?z)) (numeric reassociates))
    (rule negate-sum (neg (add ?x ?y)) => (add (neg ?x) (neg ?y)) (numeric exact))
    (rule negate-product (neg (mul ?x ?y)) => (mul (neg ?x) ?y) (numeric exact))
    (rule turn-around (sub ?x ?y) => (neg (sub ?y ?x)) (numeric exact))
    (rule negate-twice (neg (neg ?x)) => ?x (numeric exact))";

/// Joins and splits that pass through other operators and take each other away.
const PARTS: &str = "
    (rule flatten-first (concat :axis ?a (concat :axis ?a ?xs...) ?ys...) => (concat :axis ?a ?xs... ?ys...) (numeric exact))
    (rule flatten-second (concat :axis ?a ?y (concat :axis ?a ?xs...)) => (concat :axis ?a ?y ?xs...) (numeric exact))
    (rule join-of-parts (concat :axis ?a (out 0 (split ?x :axis ?a :sizes ?s)) (each (out ?k (split ?x :axis ?a :sizes ?s)))) => ?x
      (when (= ?k (range 1 (len ?s)))) (shared) (numeric exact))
    (rule part-of-join (out ?k (split (concat :axis ?a ?xs...) :axis ?a :sizes ?s)) => (item ?k ?xs)
      (when (= ?s (for ?x ?xs (dim ?x ?a)))) (shared) (numeric exact))
    (rule relu-of-join (relu (concat :axis ?a ?xs...)) => (concat :axis ?a (each ?xs (relu ?xs))) (numeric exact))
    (rule join-of-relus (concat :axis ?a (each (relu ?x))) => (relu (concat :axis ?a ?x...)) (numeric exact))
    (rule part-of-relu (out ?k (split (relu ?x) :axis ?a :sizes ?s)) => (relu (out ?k (split ?x :axis ?a :sizes ?s))) (shared) (numeric exact))
    (rule sum-of-joins (add (concat :axis ?a ?v ?w) (concat :axis ?a ?x ?y)) => (concat :axis ?a (add ?v ?x) (add ?w ?y))
      (when (same-shape ?v ?x) (same-shape ?w ?y)) (numeric exact))
    (rule relu-twice (relu (relu ?x)) => (relu ?x) (numeric exact))";

/// Guards that ask for readers, outputs and constants, which come and go; sources that stay.
const GUARDS: &str = "
    (rule negate-scale (mul ?x (const ?c)) => (neg (mul ?x (neg ?c))) (when (= (users ?x) 1) (not (const ?x))) (numeric exact))
    (rule scale-twice (mul (mul ?x (const ?b)) (const ?c)) => (mul ?x (mul ?b ?c)) (numeric rounds-constants))
    (rule scale-parts (mul (add ?x ?y) (const ?c)) => (add (mul ?x ?c) (mul ?y ?c)) (when (not (const ?x)) (not (output ?x))) (numeric reassociates))
    (rule larger (abs ?x) => (max ?x (neg ?x)) (when (read-only-by ?x abs)) (numeric exact))
    (rule abs-of-neg (abs (neg ?x)) => (abs ?x) (shared) (numeric exact))
    (rule square (mul ?x ?x) => (mul (abs ?x) (abs ?x)) (when (<= (users ?x) 2)) (numeric exact))
    (rule negate-twice (neg (neg ?x)) => ?x (when (not (output ?x))) (numeric exact))
    (rule nothing-left (mul (sub ?x ?x) ?y) => (sub ?x ?x) (numeric exact))
    (rule add-negative (add ?x (neg ?y)) => (sub ?x ?y) (shared) (numeric exact))";

/// All families.
pub const ALL: [Family; 5] = [
    Family {
        name: "fusion",
        rules: FUSION,
        forms: &[
            Form::Unary("Neg"),
            Form::Unary("Neg"),
            Form::Unary("Abs"),
            Form::Unary("Relu"),
            Form::Unary("Identity"),
            Form::Binary("Add"),
            Form::Binary("Sub"),
            Form::Binary("Mul"),
        ],
    },
    Family {
        name: "merges",
        rules: MERGES,
        forms: &[
            Form::Product("w"),
            Form::Product("v"),
            Form::Binary("Add"),
            Form::Binary("Add"),
            Form::Binary("Sub"),
            Form::Binary("Mul"),
            Form::Unary("Relu"),
            Form::Unary("Neg"),
            Form::Join,
            Form::Split,
        ],
    },
    Family { name: "algebra", rules: ALGEBRA, forms: &[Form::Binary("Add"), Form::Binary("Mul"), Form::Binary("Sub"), Form::Unary("Neg")] },
    Family {
        name: "parts",
        rules: PARTS,
        forms: &[
            Form::Join,
            Form::Join,
            Form::Split,
            Form::Split,
            Form::Unary("Relu"),
            Form::Unary("Relu"),
            Form::Binary("Add"),
            Form::Unary("Neg"),
        ],
    },
    Family {
        name: "guards",
        rules: GUARDS,
        forms: &[
            Form::Scale("b"),
            Form::Scale("c"),
            Form::Unary("Neg"),
            Form::Unary("Abs"),
            Form::Binary("Add"),
            Form::Binary("Mul"),
            Form::Binary("Sub"),
        ],
    },
];

impl Family {
    /// Its rules.
    pub fn library(&self) -> Library {
        Library::new(parse(self.name, self.rules).unwrap_or_else(|why| panic!("{why}"))).unwrap_or_else(|why| panic!("{why}"))
    }

    /// Those of its rules that reach nothing beyond their source.
    pub fn monotone(&self) -> Library {
        self.library().filter(|rule| reaches(rule).is_empty())
    }

    /// A random graph of at most so many operators.
    pub fn draw(&self, random: &mut SplitMix64, most: usize) -> Draft {
        let operators = 2 + random.below(most - 1).max(random.below(most - 1));
        let mut draft = Draft::default();
        while draft.len() < operators {
            let form = self.forms[random.below(self.forms.len())];
            let values = draft.values();
            // What nothing reads yet is twice as likely: graphs should hang together.
            let unread: Vec<Value> = values.iter().copied().filter(|value| !draft.is_read(*value)).collect();
            let mut pick = |width: Option<usize>| {
                let fits = |value: &&Value| width.is_none_or(|width| draft.width(**value) == width);
                let all: Vec<Value> = values.iter().chain(&unread).filter(fits).copied().collect();
                all[random.below(all.len())]
            };
            let first = pick(None);
            let width = draft.width(first);
            let operands = match form {
                Form::Binary(_) => vec![first, pick(Some(width))],
                Form::Join => vec![first, pick(None)],
                Form::Unary(_) | Form::Product(_) | Form::Scale(_) | Form::Split => vec![first],
            };
            let joined: usize = operands.iter().map(|value| draft.width(*value)).sum();
            if form == Form::Join && joined > WIDEST {
                continue;
            }
            draft.add(form, operands);
        }
        let all = draft.values();
        draft.outputs = all[2..].iter().copied().filter(|value| !draft.is_read(*value)).collect();
        if random.below(3) == 0 {
            let inner = all[2 + random.below(all.len() - 2)];
            if !draft.outputs.contains(&inner) {
                draft.outputs.push(inner);
            }
        }
        draft
    }
}
