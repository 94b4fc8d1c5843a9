//! Laws of the engine: undo, cost, key, soundness of every step.

mod common;
#[test]
fn x() { for (n, g) in common::fixtures() { let l = common::shipped(); let m = common::roofline(); let mut w = common::Walk::new(g, &l, &m, 1); println!("{n} {}", w.moves.len()); let p = w.pick().unwrap(); println!("{}", w.title(&p)); common::outputs(w.engine.graph(), 1); common::exact(w.engine.graph()); } for n in ["nasrnn", "mobilenet-v3-large","paper-resnet-n2","paper-inception-e-n1"] { let g = common::network(n); let l = common::shipped(); let m = common::roofline(); let t = std::time::Instant::now(); let w = common::Walk::new(g, &l, &m, 1); println!("{n} {} moves {} nodes {:?}", w.moves.len(), w.engine.graph().len(), t.elapsed()); } }
