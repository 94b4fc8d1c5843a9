use regraft_synth::*;
fn main() {
    let spec = presets::find("resnet-18-layer").unwrap().spec;
    let mut e = Explorer::new(&spec, Filter::default());
    let op = presets::operator("conv2d", &mut e.coordinates).unwrap();
    let goal = op.state(&mut e.coordinates);
    println!("{goal:?}");
    let mut s = e.start();
    for _ in 0..6 {
        let c = e.children(&s);
        println!("{} children of {:?}, distance {:?}", c.len(), s.data.iter().map(|c| spec.show(e.coordinates.size(*c))).collect::<Vec<_>>(), e.distance(&s));
        let sums = goal.sums.clone();
        let next = c.iter().find(|c| c.state.coordinates().all(|x| op.closure(&e.coordinates).contains(&x)) && c.state.sums.iter().all(|x| sums.contains(x)) && c.state.weights.iter().all(|w| goal.weights.contains(w)));
        match next { Some(n) => { println!("{:?}", n.step); s = n.state.clone(); } None => { for c in c.iter() { println!("   {:?} {}", c.step, c.distance) } break } }
    }
}
