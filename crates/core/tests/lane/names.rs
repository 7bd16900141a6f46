//! What names may hold, how much of them is kept, and what waits for them.
//!
//! Seen once: a name of 65,536 characters, and `call_sites().to_string()` panicked for good,
//! since the name's length was a width in a format. A newline in a name forged a line of the
//! table. Fifty names of 10 MB took 530 MiB for good. And a thread of `Low` that brought a
//! long name copied it under a lock that every submission by name waited for (`tests/alone`).

use crate::support::{lanes, nothing};
use twolane_core::CpuRuntime;

/// As documented at `Handle::with_name`, in bytes.
const LONGEST: usize = 256;

fn named(cpu: &CpuRuntime, name: &str) {
    let site = cpu.handle().with_name(name);
    site.spawn_cpu(nothing).wait().unwrap();
}

#[test]
fn a_long_name_is_cut() {
    let lanes = lanes(1);
    // Of one, two and four bytes each.
    for letter in ["x", "é", "🦀"] {
        let name = letter.repeat(65_536);
        named(&lanes.cpu, &name);
    }
    let just = "y".repeat(LONGEST);
    named(&lanes.cpu, &just);
    let sites = lanes.cpu.handle().call_sites();
    let table = sites.to_string();
    // A line for each site, and as long as the others.
    let lengths: Vec<_> = table.lines().map(|line| line.chars().count()).collect();
    assert_eq!(lengths, [lengths[0]; 5], "{table}");
    for site in &sites {
        let name = &site.site;
        assert!(name.len() <= LONGEST && name.len() > LONGEST - 4, "{name}");
        assert_eq!(name.ends_with('…'), *name != just, "{name}");
    }
}

#[test]
fn a_name_forges_no_line_of_the_table() {
    const FORGED: &str = "a\nforged line  Normal\r\u{1b}[2K\u{85}\u{2028}";
    let lanes = lanes(1);
    named(&lanes.cpu, FORGED);
    let sites = lanes.cpu.handle().call_sites();
    assert_eq!(sites[0].site, FORGED, "the name is what was given");
    let table = sites.to_string();
    assert_eq!(table.lines().count(), 2, "{table}");
    let is_control = |c: char| c.is_control() && c != '\n' || c == '\u{2028}';
    assert!(!table.contains(is_control), "{table:?}");
    assert!(table.contains(r"a\nforged line"), "{table}");
    // The columns stand below each other.
    let column = |line: usize, text: &str| {
        let line = table.lines().nth(line).unwrap();
        line[..line.rfind(text).unwrap()].chars().count()
    };
    assert_eq!(column(0, "priority"), column(1, "Normal"), "{table}");
}

/// In a process of its own, whose memory is that of these names.
#[cfg(target_os = "linux")]
#[test]
fn names_are_not_kept_whole() {
    const NAMES: usize = 50;
    const LENGTH: usize = 10 << 20;
    use crate::support::{child, memory};
    let _limit = crate::support::time_limit();
    if !child::is_child() {
        let kept = child::run("names::names_are_not_kept_whole", |_| (), |_| ());
        let kept: u64 = kept.parse().unwrap();
        assert!(kept < 32 << 10, "{kept} kB for {NAMES} names");
        return;
    }
    let lanes = lanes(1);
    let mut name = "x".repeat(LENGTH);
    lanes.cpu.handle().with_name(&name);
    let before = memory("VmRSS");
    for n in 0..NAMES {
        name.replace_range(..2, &format!("{n:02}"));
        lanes.cpu.handle().with_name(&name);
    }
    child::found(memory("VmRSS").saturating_sub(before));
}
