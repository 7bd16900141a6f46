//! `Debug` by name, and by what is of use to a user of some types.

macro_rules! debug_by_name {
    ($name:ident $(<$($parameter:tt),*>)? $(, $field:ident: $value:expr)*) => {
        impl$(<$($parameter),*>)? std::fmt::Debug for $name$(<$($parameter),*>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name))
                    $(.field(stringify!($field), &$value(self)))*
                    .finish_non_exhaustive()
            }
        }
    };
}
