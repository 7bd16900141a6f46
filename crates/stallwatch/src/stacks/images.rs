//! The program and its libraries as they are in memory: how to unwind a stack through
//! their functions, and how these are called.

use std::collections::HashMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufReader, Cursor, Read, Seek};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use addr2line::Loader;
use addr2line::gimli::DW_LANG_Rust;
use framehop::{
    CacheNative, ExplicitModuleSectionInfo, MayAllocateDuringUnwind, Module, UnwindRegsNative,
    Unwinder, UnwinderNative,
};
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, ReadCache, SegmentFlags};

/// More than 32 KiB of stack hold, in all but endless recursion.
const FRAMES: usize = 256;

/// The registers that unwinding needs, by their numbers in the kernel's `perf_regs.h`.
#[cfg(target_arch = "x86_64")]
pub(super) const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;
#[cfg(target_arch = "aarch64")]
pub(super) const REGISTERS: u64 = 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32;

#[derive(Clone, Copy, Debug)]
pub(super) struct Registers {
    ip: u64,
    sp: u64,
    unwind: UnwindRegsNative,
}

impl Registers {
    /// `values` are in the order of their numbers.
    pub(super) fn new(values: &[u64]) -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        let (ip, sp, unwind) = match *values {
            [bp, sp, ip] => (ip, sp, UnwindRegsNative::new(ip, sp, bp)),
            _ => return None,
        };
        #[cfg(target_arch = "aarch64")]
        let (ip, sp, unwind) = match *values {
            [fp, lr, sp, ip] => (ip, sp, UnwindRegsNative::new(lr, sp, fp)),
            _ => return None,
        };
        Some(Self { ip, sp, unwind })
    }
}

const VDSO: &str = "[vdso]";

/// Where an image can be read.
enum Source {
    File(PathBuf),
    Memory(Range<u64>),
}

trait ReadSeek: Read + Seek {}
impl<T: Read + Seek> ReadSeek for T {}

impl Source {
    /// Reads no more of a file than is asked for.
    fn open(&self) -> io::Result<ReadCache<Box<dyn ReadSeek>>> {
        Ok(ReadCache::new(match self {
            Self::File(path) => Box::new(BufReader::new(File::open(path)?)),
            Self::Memory(at) => {
                let mut bytes = vec![0; (at.end - at.start) as usize];
                File::open("/proc/self/mem")?.read_exact_at(&mut bytes, at.start)?;
                Box::new(Cursor::new(bytes))
            }
        }))
    }
}

/// A file of which code is mapped, or the kernel's vDSO.
struct Image {
    mapped: Range<u64>,
    /// What is added to an address in the file to get the one in memory.
    bias: u64,
    name: String,
    source: Source,
}

pub(super) struct Images {
    images: Vec<Image>,
    unwinder: UnwinderNative<Vec<u8>, MayAllocateDuringUnwind>,
    cache: CacheNative<MayAllocateDuringUnwind>,
}

impl Images {
    pub(super) fn load() -> io::Result<Self> {
        let mut all = Self {
            images: Vec::new(),
            unwinder: UnwinderNative::new(),
            cache: CacheNative::new(),
        };
        let program = fs::read_link("/proc/self/exe")?;
        for line in fs::read_to_string("/proc/self/maps")?.lines() {
            // What is not read here is left out, and stacks end there.
            let _ = all.add(line, &program);
        }
        Ok(all)
    }

    /// Takes a line of `/proc/self/maps`: start-end, permissions, offset, device, inode,
    /// path.
    fn add(&mut self, line: &str, program: &Path) -> Option<()> {
        let mut fields = line.splitn(6, ' ');
        let (start, end) = fields.next()?.split_once('-')?;
        let mapped = u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?;
        let executable = fields.next()?.contains('x');
        let offset = u64::from_str_radix(fields.next()?, 16).ok()?;
        let name = fields.nth(2)?.trim_start().to_owned();
        if !executable {
            return None;
        }
        let source = match &*name {
            VDSO => Source::Memory(mapped.clone()),
            // A program that was replaced while it runs has no path, but can be opened.
            path if Path::new(path) == program => Source::File("/proc/self/exe".into()),
            path => Source::File(path.into()),
        };
        let file = source.open().ok()?;
        let elf = object::File::parse(&file).ok()?;
        let bias = elf.segments().find_map(|segment| {
            let (at, len) = segment.file_range();
            let code = matches!(segment.flags(), SegmentFlags::Elf { p_flags } if p_flags & 1 != 0);
            (code && offset < at + len).then(|| {
                (mapped.start - offset)
                    .wrapping_add(at)
                    .wrapping_sub(segment.address())
            })
        })?;
        let address = |name| {
            let section = elf.section_by_name(name)?;
            Some(section.address()..section.address() + section.size())
        };
        let data = |name| Some(elf.section_by_name(name)?.data().ok()?.to_vec());
        let sections = ExplicitModuleSectionInfo {
            text_svma: address(".text"),
            got_svma: address(".got"),
            eh_frame_svma: address(".eh_frame"),
            eh_frame: data(".eh_frame"),
            eh_frame_hdr_svma: address(".eh_frame_hdr"),
            eh_frame_hdr: data(".eh_frame_hdr"),
            ..Default::default()
        };
        let module = Module::new(name.clone(), mapped.clone(), bias, sections);
        self.unwinder.add_module(module);
        self.images.push(Image {
            mapped,
            bias,
            name,
            source,
        });
        Some(())
    }

    /// An address in each function on the stack, the innermost first.
    pub(super) fn unwind(&mut self, registers: Registers, stack: &[u8]) -> Vec<u64> {
        let mut read = |address: u64| {
            let at = usize::try_from(address.wrapping_sub(registers.sp)).map_err(|_| ())?;
            let word = stack.get(at..).and_then(<[u8]>::first_chunk).ok_or(())?;
            Ok(u64::from_ne_bytes(*word))
        };
        let unwinder = &self.unwinder;
        let mut frames =
            unwinder.iter_frames(registers.ip, registers.unwind, &mut self.cache, &mut read);
        let frames = std::iter::from_fn(|| frames.next().ok().flatten());
        let addresses = frames.map(|frame| frame.address_for_lookup());
        // Code outside of all images has no unwind information: from there on it would be
        // guesses.
        let known = |address: &u64| {
            self.images
                .iter()
                .any(|image| image.mapped.contains(address))
        };
        addresses.take(FRAMES).take_while(known).collect()
    }

    /// The functions at each address, more than one where some were inlined.
    pub(super) fn names(&self, mut addresses: Vec<u64>) -> HashMap<u64, Vec<Frame>> {
        addresses.sort_unstable();
        addresses.dedup();
        let mut names = HashMap::new();
        for image in &self.images {
            let mine = addresses
                .iter()
                .filter(|address| image.mapped.contains(address));
            let mine: Vec<u64> = mine
                .map(|address| address.wrapping_sub(image.bias))
                .collect();
            if mine.is_empty() {
                continue;
            }
            let dwarf = match &image.source {
                Source::File(path) => Loader::new(path).ok(),
                Source::Memory(_) => None,
            };
            let symbols = image.symbols(&mine).unwrap_or_default();
            for address in mine {
                let symbol = symbols.get(&address).map(String::as_str);
                let frames = image.frames(dwarf.as_ref(), symbol, address);
                names.insert(address.wrapping_add(image.bias), frames);
            }
        }
        names
    }
}

impl Image {
    /// By the size of the symbols: in a library that was stripped, the nearest symbol
    /// below an address is mostly that of another function.
    fn symbols(&self, addresses: &[u64]) -> io::Result<HashMap<u64, String>> {
        let file = self.source.open()?;
        let elf = object::File::parse(&file).map_err(io::Error::other)?;
        let mut names = HashMap::new();
        for symbol in elf.symbols().chain(elf.dynamic_symbols()) {
            let first = addresses.partition_point(|address| *address < symbol.address());
            for &address in &addresses[first..] {
                if address - symbol.address() >= symbol.size() {
                    break;
                }
                if let Ok(name) = symbol.name() {
                    names.entry(address).or_insert_with(|| demangled(name));
                }
            }
        }
        Ok(names)
    }

    fn frames(&self, dwarf: Option<&Loader>, symbol: Option<&str>, address: u64) -> Vec<Frame> {
        let mut frames = Vec::new();
        if let Some(mut found) = dwarf.and_then(|dwarf| dwarf.find_frames(address).ok()) {
            while let Ok(Some(frame)) = found.next() {
                let place = frame.location.and_then(|at| Some((at.file?, at.line?)));
                let name = frame
                    .function
                    .as_ref()
                    .and_then(|name| name.raw_name().ok());
                frames.push(Frame {
                    function: name.map_or(String::new(), |name| demangled(&name)),
                    place: place.map(|(file, line)| format!("{}:{line}", short(file))),
                });
            }
        }
        // The last is the function itself, into which the others were inlined. Its symbol
        // has its path, which DWARF of line tables alone lacks.
        let own = frames.pop();
        // The standard library's iterators, comparisons and the like say little.
        let of_std = |place: &str| STD.iter().any(|name| place.starts_with(name));
        frames.retain(|frame| frame.place.as_deref().is_some_and(|place| !of_std(place)));
        let file = self.name.rsplit('/').next().unwrap_or_default();
        let function = symbol
            .map(str::to_owned)
            .or(own.as_ref().map(|own| own.function.clone()));
        frames.push(Frame {
            function: function.unwrap_or_else(|| format!("{file}+{address:#x}")),
            place: own.and_then(|own| own.place),
        });
        frames
    }
}

fn demangled(name: &str) -> String {
    let name = addr2line::demangle_auto(name.into(), Some(DW_LANG_Rust));
    // Line tables alone have names without paths, but with all the type parameters.
    match name.split_once('<') {
        Some((short, _)) if !short.is_empty() && !short.contains("::") => short.to_owned(),
        _ => name.into_owned(),
    }
}

/// The path of a file of source code, without what is before a crate's name.
fn short(file: &str) -> &str {
    let after = |prefix| file.split_once(prefix).map(|(_, file)| file);
    let of_registry = || after("/registry/src/")?.split_once('/');
    let of_std = || after("/library/").filter(|file| STD.iter().any(|name| file.starts_with(name)));
    of_registry().map_or_else(|| of_std().unwrap_or(file), |(_, file)| file)
}

const STD: [&str; 3] = ["alloc/", "core/", "std/"];

/// A function, and the line that it was at.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) function: String,
    pub(super) place: Option<String>,
}

impl Frame {
    /// The crate that the function is of; of `<A as b::C>::d`, that of the type, or that
    /// of the trait where the type is a parameter. `None` where neither name nor place
    /// tells.
    pub(super) fn krate(&self) -> Option<&str> {
        let path = self.function.trim_start_matches(['<', '&', '*', '(', '[']);
        match (path.split_once("::"), &self.place) {
            // `<u64>::pow`, `<[T]>::sort`.
            (Some((first, _)), _) if first.ends_with('>') => Some("core"),
            (Some((first, _)), _) => Some(first.rsplit_once(' ').map_or(first, |(_, last)| last)),
            // Of the name that line tables have, only the place has the crate.
            (None, Some(place)) => place.split(['/', '-']).next(),
            (None, None) => None,
        }
    }
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.function)?;
        match &self.place {
            Some(place) => write!(f, " ({place})"),
            None => Ok(()),
        }
    }
}
