//! Names of written values: first declared and captured names, then original ones, then new ones.

use std::collections::{BTreeMap, HashMap, HashSet};

use regraft_ir::{Op, ValueId};

use crate::body::Surroundings;
use crate::error::WriteError;
use crate::plan::{Form, Plan};
use crate::scope;

/// The names of all written values.
pub(crate) struct Names<'a> {
    of: BTreeMap<ValueId, String>,
    used: HashSet<String>,
    reserved: HashSet<String>,
    /// Names outside a body, and a part of its new names that is unique to it.
    surroundings: &'a Surroundings,
    next: HashMap<String, usize>,
    /// Second names of values, each made by an `Identity`.
    pub aliases: BTreeMap<String, ValueId>,
}

impl<'a> Names<'a> {
    /// Names everything that the plan writes.
    pub(crate) fn new(plan: &Plan<'a>) -> Result<Names<'a>, WriteError> {
        let mut reserved = HashSet::new();
        scope::all_names(plan.model.graph_proto(), &mut reserved);
        let mut names = Names {
            of: BTreeMap::new(),
            used: HashSet::new(),
            reserved,
            surroundings: &plan.model.surroundings,
            next: HashMap::new(),
            aliases: BTreeMap::new(),
        };
        names.leaves(plan)?;
        names.declared(plan)?;
        names.subgraphs(plan)?;
        names.rest(plan);
        Ok(names)
    }

    /// The name of a value.
    pub(crate) fn get(&self, value: ValueId) -> &str {
        self.of.get(&value).map_or("", String::as_str)
    }

    /// All values that are written, and their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ValueId, &str)> {
        self.of.iter().map(|(value, name)| (*value, name.as_str()))
    }

    /// True if some value carries the name.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.used.contains(name)
    }

    /// Takes a name that is still free; false otherwise.
    pub(crate) fn claim(&mut self, name: &str) -> bool {
        self.used.insert(name.to_string())
    }

    /// A new name: `regraft_<what>_<n>`.
    pub(crate) fn fresh(&mut self, what: &str) -> String {
        let next = self.next.entry(what.to_string()).or_default();
        loop {
            *next += 1;
            let name = format!("regraft_{}{what}_{next}", self.surroundings.tag);
            if !self.reserved.contains(&name) && !self.surroundings.names.contains(&name) && self.used.insert(name.clone()) {
                return name;
            }
        }
    }

    fn assign(&mut self, value: ValueId, name: &str) -> Result<(), WriteError> {
        if !self.claim(name) {
            return Err(WriteError::NameConflict(name.to_string()));
        }
        self.of.insert(value, name.to_string());
        Ok(())
    }

    /// Inputs, initializers listed as inputs, and original constants outside the graph keep their
    /// names.
    fn leaves(&mut self, plan: &Plan<'_>) -> Result<(), WriteError> {
        let declared: HashSet<&str> = plan.model.graph_proto().input.iter().map(|i| i.name()).collect();
        for (id, form) in &plan.forms {
            let Some(name) = plan.graph.node(*id).names.first().cloned().flatten() else { continue };
            if matches!(form, Form::Input) || (matches!(form, Form::Initializer(_)) && declared.contains(name.as_ref())) {
                self.assign(id.out(), &name)?;
            }
        }
        for input in declared {
            self.claim(input);
        }
        for name in &plan.originals {
            self.claim(name);
        }
        Ok(())
    }

    /// Declared outputs get their names.
    fn declared(&mut self, plan: &Plan<'_>) -> Result<(), WriteError> {
        let mut done: HashMap<&str, ValueId> = HashMap::new();
        for output in plan.graph.outputs() {
            let (value, name) = (output.value, output.name.as_ref());
            if let Some(before) = done.insert(name, value) {
                if before != value {
                    return Err(WriteError::NameConflict(name.to_string()));
                }
                continue;
            }
            match self.of.get(&value) {
                Some(have) if have == name => {}
                None if !is_initializer(plan, value) || own_name(plan, value) == Some(name) => self.assign(value, name)?,
                _ => self.alias(value, name)?,
            }
        }
        Ok(())
    }

    /// Values that subgraphs capture get the captured names.
    fn subgraphs(&mut self, plan: &Plan<'_>) -> Result<(), WriteError> {
        let mut known: HashMap<String, ValueId> = self.of.iter().map(|(v, n)| (n.clone(), *v)).collect();
        known.extend(self.aliases.iter().map(|(n, v)| (n.clone(), *v)));
        for form in plan.forms.values() {
            let Form::Verbatim { captured, .. } = form else { continue };
            for (name, value) in captured {
                match known.insert(name.clone(), *value) {
                    Some(before) if before != *value => return Err(WriteError::NameConflict(name.clone())),
                    Some(_) => {}
                    None if self.of.contains_key(value) => self.alias(*value, name)?,
                    None => self.assign(*value, name)?,
                }
            }
        }
        Ok(())
    }

    fn alias(&mut self, value: ValueId, name: &str) -> Result<(), WriteError> {
        if !self.claim(name) {
            return Err(WriteError::NameConflict(name.to_string()));
        }
        self.aliases.insert(name.to_string(), value);
        Ok(())
    }

    fn rest(&mut self, plan: &Plan<'_>) {
        let mut open: Vec<ValueId> = Vec::new();
        for id in plan.forms.keys() {
            open.extend((0..plan.graph.node(*id).types.len()).map(|port| id.port(port as u32)));
        }
        open.extend(plan.folded.keys());
        open.sort();
        open.dedup();
        open.retain(|v| !self.of.contains_key(v));
        let mut nameless = Vec::new();
        for value in open {
            match own_name(plan, value) {
                Some(name) if self.claim(name) => drop(self.of.insert(value, name.to_string())),
                _ => nameless.push(value),
            }
        }
        for value in nameless {
            let what =
                if is_initializer(plan, value) { "const".to_string() } else { plan.graph.node(value.node).op.kind().name().to_lowercase() };
            let name = self.fresh(&what);
            self.of.insert(value, name);
        }
    }
}

/// The name that the value has in the original model.
fn own_name<'a>(plan: &Plan<'a>, value: ValueId) -> Option<&'a str> {
    plan.graph.node(value.node).names.get(value.port as usize)?.as_deref()
}

/// True if the value is written as an initializer, so that no node output carries its name.
fn is_initializer(plan: &Plan<'_>, value: ValueId) -> bool {
    plan.folded.contains_key(&value)
        || matches!(plan.forms.get(&value.node), Some(Form::Initializer(_) | Form::Constant(_) | Form::Sparse))
        || matches!(plan.graph.node(value.node).op, Op::Input(_))
}
