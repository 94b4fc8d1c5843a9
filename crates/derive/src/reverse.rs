//! Rules read from right to left.

use regraft_ir::OpKind;
use regraft_rules::expr::{Expr, Val};
use regraft_rules::rule::{NodePattern, Pattern, Rule, Target, Var};
use rustc_hash::FxHashSet;

/// `rule` with its sides swapped, if its target can be matched and its source built from the match.
///
/// It proposes more than the rule allows: guards are dropped, and so are computed attributes of the
/// target. The caller must check that the rule undoes a proposal. Optional operands are assumed
/// absent where the target asks whether they are given.
pub fn reverse(rule: &Rule) -> Option<Rule> {
    let mut reverser = Reverser::new(rule);
    rule.source.iter().for_each(|pattern| reverser.survey(pattern));
    let source: Vec<Pattern> = rule.target.iter().map(|target| reverser.pattern(target)).collect::<Option<_>>()?;
    if !source.iter().all(|pattern| matches!(pattern, Pattern::Node(_))) {
        return None;
    }
    let wheres: Vec<(Var, Expr)> = rule.wheres.iter().filter(|(_, body)| reverser.knows(body)).cloned().collect();
    reverser.bound.extend(wheres.iter().map(|(var, _)| *var));
    let target: Vec<Target> = rule.source.iter().map(|pattern| reverser.target(pattern, false)).collect::<Option<_>>()?;
    Some(Rule { source, wheres, lets: Vec::new(), target, guards: Vec::new(), shared: true, variables: reverser.named, ..rule.clone() })
}

struct Reverser<'a> {
    rule: &'a Rule,
    /// Names of all variables, those of the rule first.
    named: Vec<String>,
    /// Variables of the source for lists, and for operands that may be absent.
    listed: FxHashSet<Var>,
    optional: FxHashSet<Var>,
    /// Variables of the source that name an operator.
    operators: FxHashSet<Var>,
    /// Variables bound by a pattern made from the target.
    bound: FxHashSet<Var>,
    /// One of them that stands for a whole tensor.
    tensor: Option<Var>,
    /// `let` variables whose body is already in a pattern.
    opened: FxHashSet<Var>,
    made: Vec<Made>,
    /// Inside an `each`: the lists whose items are meant.
    each: Vec<Var>,
}

/// An operator of the target.
struct Made {
    kind: OpKind,
    /// The operator of the source whose attributes it copies.
    like: Option<Var>,
    /// The variable that names it in the pattern.
    name: Var,
    /// Whether there is one for every item of a list.
    listed: bool,
}

impl<'a> Reverser<'a> {
    fn new(rule: &'a Rule) -> Reverser<'a> {
        Reverser {
            rule,
            named: rule.variables.clone(),
            listed: FxHashSet::default(),
            optional: FxHashSet::default(),
            operators: FxHashSet::default(),
            bound: FxHashSet::default(),
            tensor: None,
            opened: FxHashSet::default(),
            made: Vec::new(),
            each: Vec::new(),
        }
    }

    /// Records what the variables of the source stand for.
    fn survey(&mut self, pattern: &Pattern) {
        match pattern {
            Pattern::Rest(var) => drop(self.listed.insert(*var)),
            Pattern::Optional(var) => drop(self.optional.insert(*var)),
            Pattern::Each(inner, vars) => {
                self.listed.extend(vars);
                self.survey(inner);
            }
            Pattern::Node(node) => {
                self.operators.extend(node.bind);
                node.operands.iter().for_each(|operand| self.survey(operand));
            }
            Pattern::Any(_) | Pattern::Constant(_) | Pattern::Number(_) | Pattern::Elementwise(..) => {}
        }
    }

    /// The pattern that matches what `target` builds.
    fn pattern(&mut self, target: &Target) -> Option<Pattern> {
        match target {
            Target::Use(var) => self.used(*var),
            Target::Each(vars, body) => {
                let before = self.made.len();
                self.each.extend(vars);
                let inner = self.pattern(body);
                self.each.truncate(self.each.len() - vars.len());
                let names = self.made[before..].iter().map(|made| made.name);
                Some(Pattern::Each(Box::new(inner?), vars.iter().copied().chain(names).collect()))
            }
            Target::Node { kind, like, attrs, operands } => {
                let given: Vec<&Target> = operands.iter().filter(|operand| !self.is_absent(operand)).collect();
                let operands: Vec<Pattern> = given.into_iter().map(|operand| self.pattern(operand)).collect::<Option<_>>()?;
                let last = operands.len().saturating_sub(1);
                if operands.iter().take(last).any(|p| matches!(p, Pattern::Rest(_) | Pattern::Each(..) | Pattern::Optional(_))) {
                    return None;
                }
                let attrs = attrs.iter().filter_map(|(name, value)| Some((name.clone(), self.found(value)?))).collect();
                self.named.push(format!("made{}", self.named.len()));
                let name = self.named.len() - 1;
                self.made.push(Made { kind: *kind, like: *like, name, listed: !self.each.is_empty() });
                Some(Pattern::Node(NodePattern { kind: *kind, bind: Some(name), port: Expr::Literal(Val::int(0)), attrs, operands }))
            }
            Target::Out(port, inner) => {
                let Some(Pattern::Node(mut node)) = self.pattern(inner) else { return None };
                node.port = self.found(port)?;
                Some(Pattern::Node(node))
            }
            Target::Scalar(Expr::Literal(value), _) => value.as_f64().map(Pattern::Number),
            Target::If(condition, yes, no) => match (self.holds(condition)?, no) {
                (true, _) => self.pattern(yes),
                (false, no) => self.pattern(no.as_ref()?),
            },
            _ => None,
        }
    }

    /// A variable of the source, or a named part of the target.
    fn used(&mut self, var: Var) -> Option<Pattern> {
        if let Some((_, body)) = self.rule.lets.iter().find(|(name, _)| *name == var) {
            if !self.opened.insert(var) {
                return Some(Pattern::Any(var));
            }
            let Pattern::Node(mut node) = self.pattern(body)? else { return None };
            // Later uses refer to the name of the `let`.
            let name = node.bind.replace(var)?;
            self.made.iter_mut().filter(|made| made.name == name).for_each(|made| made.name = var);
            return Some(Pattern::Node(node));
        }
        if self.operators.contains(&var) {
            return None;
        }
        self.bound.insert(var);
        if self.listed.contains(&var) && !self.each.contains(&var) {
            return Some(Pattern::Rest(var));
        }
        if self.optional.contains(&var) {
            return Some(Pattern::Optional(var));
        }
        if self.each.is_empty() {
            self.tensor = Some(var);
        }
        Some(Pattern::Any(var))
    }

    /// What an attribute stated by the target must match: a known value, or the value of a
    /// variable.
    fn found(&mut self, value: &Expr) -> Option<Expr> {
        match value {
            Expr::Literal(_) => Some(value.clone()),
            Expr::Var(var) if !self.rule.wheres.iter().any(|(name, _)| name == var) => {
                self.bound.insert(*var);
                Some(value.clone())
            }
            _ => None,
        }
    }

    /// A target that builds what `pattern` matches.
    fn target(&self, pattern: &Pattern, listed: bool) -> Option<Target> {
        match pattern {
            Pattern::Any(var) | Pattern::Constant(var) | Pattern::Rest(var) | Pattern::Optional(var) => {
                self.bound.contains(var).then_some(Target::Use(*var))
            }
            Pattern::Each(inner, vars) => {
                let mut lists: Vec<Var> = vars.iter().copied().filter(|var| self.bound.contains(var)).collect();
                lists.extend(self.made.iter().filter(|made| made.listed).map(|made| made.name));
                let inner = self.target(inner, true)?;
                (!lists.is_empty()).then(|| Target::Each(lists, Box::new(inner)))
            }
            Pattern::Elementwise(..) => None,
            Pattern::Number(value) => Some(Target::Scalar(Expr::Literal(Val::Float(*value)), self.tensor?)),
            Pattern::Node(node) => {
                let known = |operand: &&Pattern| !matches!(operand, Pattern::Optional(var) if !self.bound.contains(var));
                let operands: Vec<&Pattern> = node.operands.iter().filter(known).collect();
                let operands: Vec<Target> = operands.into_iter().map(|operand| self.target(operand, listed)).collect::<Option<_>>()?;
                let bare = node.kind.attr_names().is_empty();
                let alike = || self.made.iter().filter(|made| !bare && made.kind == node.kind && (listed || !made.listed));
                let like = alike().find(|made| made.like.is_some() && made.like == node.bind).or_else(|| alike().next());
                let attrs = node.attrs.iter().filter(|(_, value)| self.knows(value)).cloned().collect();
                let built = Target::Node { kind: node.kind, like: like.map(|made| made.name), attrs, operands };
                match &node.port {
                    Expr::Literal(port) if port.as_int() == Some(0) => Some(built),
                    port => self.knows(port).then(|| Target::Out(port.clone(), Box::new(built))),
                }
            }
        }
    }

    /// True for an operand of the target that is omitted if all optional operands of the source are
    /// absent.
    fn is_absent(&self, target: &Target) -> bool {
        matches!(target, Target::If(condition, _, None) if self.holds(condition) == Some(false))
    }

    /// Whether a condition on which operands are given holds if no optional one is.
    fn holds(&self, condition: &Expr) -> Option<bool> {
        let all = |parts: &[Expr]| parts.iter().map(|p| self.holds(p)).collect::<Option<Vec<bool>>>();
        match condition {
            Expr::And(parts) => Some(all(parts)?.into_iter().all(|p| p)),
            Expr::Or(parts) => Some(all(parts)?.into_iter().any(|p| p)),
            Expr::Shown(condition) => self.holds(condition),
            Expr::Call(function, parts) => match (function.name, parts.as_slice()) {
                ("not", [part]) => self.holds(part).map(|p| !p),
                ("given", [Expr::Var(var)]) if self.optional.contains(var) => Some(false),
                _ => None,
            },
            _ => None,
        }
    }

    /// True if all variables of an expression are bound.
    fn knows(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Literal(_) => true,
            Expr::Var(var) => self.bound.contains(var),
            // Attributes belong to operators, whose names differ.
            Expr::Attr(..) => false,
            Expr::If(parts) => parts.iter().all(|p| self.knows(p)),
            Expr::And(parts) | Expr::Or(parts) | Expr::Call(_, parts) => parts.iter().all(|p| self.knows(p)),
            Expr::Shown(condition) => self.knows(condition),
            Expr::For(_, list, _) => self.knows(list),
        }
    }
}
