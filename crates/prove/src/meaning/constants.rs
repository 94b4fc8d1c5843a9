//! Constants, each read once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use regraft_ir::{Class, Const};

use crate::index::Table;
use crate::meaning::one_hot::OneHot;
use crate::value::{Number, Reading, elements};

/// How constants are read, and the tables read so far. Copies share them.
#[derive(Clone, Default)]
pub(crate) struct Constants {
    /// How floating-point numbers are read.
    pub reading: Reading,
    /// Whether a whole power of a sum over index variables is a function about which nothing is
    /// known but that equal operands have equal powers.
    pub opaque_powers: bool,
    tables: Rc<RefCell<HashMap<u128, Option<Rc<Table>>>>>,
    one_hot: Rc<RefCell<HashMap<u128, Option<Rc<OneHot>>>>>,
}

impl Constants {
    /// Constants read this way, none of them yet.
    pub fn new(reading: Reading) -> Constants {
        Constants { reading, ..Constants::default() }
    }

    /// The same, where powers of long sums are not multiplied out.
    pub fn with_opaque_powers(&self) -> Constants {
        Constants { opaque_powers: true, ..self.clone() }
    }

    /// The elements of a constant; `None` if one is infinite or NaN.
    pub fn table(&self, constant: &Const) -> Option<Rc<Table>> {
        let mut tables = self.tables.borrow_mut();
        let read = || self.numbers(constant).map(|numbers| Rc::new(Table::new(constant.shape(), numbers)));
        tables.entry(constant.fingerprint()).or_insert_with(read).clone()
    }

    /// The constant as rows with one number each, if it consists of them.
    pub fn one_hot(&self, constant: &Const) -> Option<Rc<OneHot>> {
        let read = || OneHot::of(constant).map(Rc::new);
        self.one_hot.borrow_mut().entry(constant.fingerprint()).or_insert_with(read).clone()
    }

    fn numbers(&self, constant: &Const) -> Option<Vec<Number>> {
        match constant.dtype().class() {
            Class::Real => constant.to_f64()?.into_iter().map(|v| self.reading.number(v, constant.dtype())).collect(),
            _ => elements(constant),
        }
    }
}
