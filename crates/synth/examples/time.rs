use regraft_synth::*;
use std::time::Instant;
fn main() {
    let spec = presets::find("resnet-18-layer").unwrap().spec;
    let mut explorer = Explorer::new(&spec, Filter::default());
    let levels = explorer.openings();
    for level in &levels { 
        let t = Instant::now();
        let mut n = 0; let mut grand = 0; let mut calls=0;
        for state in level.iter().step_by((level.len()/30).max(1)) {
            let c = explorer.children(state);
            n += c.len(); calls+=1;
            for child in c.iter().step_by((c.len()/5).max(1)) { grand += explorer.children(&child.state).len(); calls+=1; }
        }
        println!("{} openings, {calls} calls, {n} {grand} {:?} per call", level.len(), t.elapsed()/calls.max(1));
    }
    let t = Instant::now();
    for named in presets::OPERATORS {
        let op = presets::operator(named.name, &mut explorer.coordinates).unwrap();
        let t = Instant::now();
        let k = explorer.key(&op);
        let tk = t.elapsed();
        let t = Instant::now();
        let p = Plan::of(&op, &mut explorer.coordinates).unwrap();
        println!("{} key {tk:?} plan {:?} macs {:.3} params {:.3} {:?}", named.name, t.elapsed(), p.macs / spec.dense_macs(), op.parameters(&explorer.coordinates).iter().zip(&spec.layers).map(|(p,l)|p*l.count as f64).sum::<f64>()/spec.dense_parameters(), k);
    }
    println!("{:?}", t.elapsed());
}
