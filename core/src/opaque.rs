//! `Debug` by name only, for types whose fields are of no use to a user.

macro_rules! debug_by_name {
    ($name:ident $(<$($parameter:tt),*>)?) => {
        impl$(<$($parameter),*>)? std::fmt::Debug for $name$(<$($parameter),*>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    };
}
