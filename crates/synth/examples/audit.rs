use regraft_synth::*;
fn main() {
    let depth: usize = std::env::args().nth(1).map_or(6, |n| n.parse().unwrap());
    let text = r#"
input = ["C_in", "H", "H"]
output = ["C_out", "H", "H"]
unordered = ["C_in", "C_out"]
[variables]
C_in = 2
C_out = 2
[coefficients]
k = [3, 2]
s = [2, 2]
[[layers]]
C_in = 16
C_out = 32
H = 8
[limits]
weight = 2
"#;
    let spec = Spec::parse(text).unwrap();
    let t = std::time::Instant::now();
    let a = audit(&spec, depth);
    println!("{:?} {a:#?}", t.elapsed());
}
