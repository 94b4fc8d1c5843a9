fn main() {
    let library = regraft_rules::Library::shipped().unwrap();
    let a: Vec<String> = std::env::args().collect();
    let i = a[2].parse::<regraft_rules::Draw>().unwrap().instance(library.get(&a[1]).unwrap()).unwrap();
    println!(
        "{}\n{}\n{}",
        regraft_ir::text::print(&i.before),
        regraft_ir::text::print(&i.after),
        regraft_prove::equal(&i.before, &i.after)
    );
}
