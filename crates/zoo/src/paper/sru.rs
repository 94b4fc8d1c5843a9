//! SRU of OCGGS.

use crate::{
    builder::{Builder, Value},
    networks::Outputs,
};

const WIDTH: i64 = 1024;

/// Three products, two gates. There is no `1 - gate`: both products of a sum are weighted by the
/// same gate.
fn step(b: &mut Builder, x: &Value, memory: &Value) -> (Value, Value) {
    let candidate = b.project("candidate", x, WIDTH, 1.0);
    let forget = b.project("forget", x, WIDTH, 1.0);
    let forget = b.sigmoid(&forget);
    let reset = b.project("reset", x, WIDTH, 1.0);
    let reset = b.sigmoid(&reset);
    let mut weigh = |gate: &Value, left: &Value, right: &Value| {
        let left = b.mul(gate, left);
        let right = b.mul(gate, right);
        b.add(&left, &right)
    };
    let memory = weigh(&forget, memory, &candidate);
    let output = weigh(&reset, &memory, x);
    (output, memory)
}

/// `x` through `N` steps: the output of one is the input of the next.
pub(crate) fn build<const N: usize>(b: &mut Builder, inputs: &[Value]) -> Outputs {
    let [x, memory] = inputs else { unreachable!("the catalog gives two inputs") };
    let (mut x, mut memory) = (x.clone(), memory.clone());
    for index in 0..N {
        (x, memory) = b.within(format!("step{index}"), |b| step(b, &x, &memory));
    }
    vec![("output".to_owned(), x), ("last_memory".to_owned(), memory)]
}
