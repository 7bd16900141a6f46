//! Every production of SQL that nests or repeats, as a text of any size.

/// `item`, `n` times, with `sep` in between; `@` is its number, and `#` the one before. In `tail`,
/// `#` is the last one's. Or, with a core: `item` `n` times, the core, and `sep` `n` times.
pub struct Production {
    pub name: &'static str,
    head: &'static str,
    item: &'static str,
    core: Option<&'static str>,
    sep: &'static str,
    tail: &'static str,
}

impl Production {
    pub fn text(&self, n: usize) -> String {
        let item = |i: usize| {
            let (own, before) = (i.to_string(), i.wrapping_sub(1).to_string());
            self.item.replace('@', &own).replace('#', &before)
        };
        let items: Vec<_> = (1..=n).map(item).collect();
        let tail = self.tail.replace('#', &n.to_string());
        match self.core {
            Some(core) => {
                let (open, close) = (items.concat(), self.sep.repeat(n));
                format!("{}{open}{core}{close}{tail}", self.head)
            }
            None => format!("{}{}{tail}", self.head, items.join(self.sep)),
        }
    }
}

const fn chain(
    name: &'static str,
    head: &'static str,
    item: &'static str,
    sep: &'static str,
    tail: &'static str,
) -> Production {
    Production {
        name,
        head,
        item,
        core: None,
        sep,
        tail,
    }
}

const fn nest(
    name: &'static str,
    head: &'static str,
    item: &'static str,
    core: &'static str,
    sep: &'static str,
    tail: &'static str,
) -> Production {
    Production {
        name,
        head,
        item,
        core: Some(core),
        sep,
        tail,
    }
}

const S: &str = "select ";
const W: &str = "select n from t where ";
const FROM: &str = " from t";
const C0: &str = "with c0 as (select n, b from t)";

pub const ALL: &[Production] = &[
    // Operators.
    chain("sum", S, "n", "+", FROM),
    chain("product of literals", "select n, ", "1", "*", FROM),
    chain("concatenation", S, "s", "||", FROM),
    chain("comparison", W, "b", "=", ""),
    chain("and", W, "n<>@", " and ", ""),
    chain("or", W, "n=@", " or ", ""),
    chain("or of ands", W, "n=@ and m=@", " or ", ""),
    chain("and of ors", W, "(n>@ or m<@)", " and ", ""),
    chain("is true", "select n from t where b", " is true", "", ""),
    chain("is null", "select n from t where b", " is not null", "", ""),
    chain(
        "is distinct",
        "select n from t where b",
        " is distinct from b",
        "",
        "",
    ),
    chain("double colon", "select n", "::int::text", "", FROM),
    chain("like", W, "s like 'a@%'", " or ", ""),
    chain(
        "time zone",
        "select now()",
        " at time zone '+00:00'",
        "",
        FROM,
    ),
    chain("not", W, "not ", "", "b"),
    chain("unary minus", S, "- ", "", "n from t"),
    nest("not (", W, "not (", "b", ")", ""),
    nest("parentheses", S, "(", "n", ")", FROM),
    nest("cast", S, "cast(", "n", " as int)", FROM),
    chain("interval", S, "interval ", "", "'1' from t"),
    nest(
        "type",
        "select cast(null as ",
        "array<",
        "int",
        ">",
        ") from t",
    ),
    nest(
        "type of a struct",
        "select cast(null as ",
        "struct<a ",
        "int",
        ">",
        ") from t",
    ),
    // What is written out: each doubles what is in it.
    chain("between", W, "n between @ and 2", " and ", ""),
    chain(
        "between of between",
        "select n from t where b",
        " between b and true",
        "",
        "",
    ),
    chain(
        "in",
        "select n from t where b",
        " in (true, b, n = 1)",
        "",
        "",
    ),
    nest(
        "regular expressions",
        W,
        "(",
        "s",
        " ~ '(a|b|c|d)')::text",
        " = 's'",
    ),
    nest("coalesce", S, "coalesce(", "n", ", 1)", FROM),
    nest("nvl", S, "nvl(", "n", ", m)", FROM),
    nest(
        "array_has",
        S,
        "array_has([b, true, n = 1], ",
        "b",
        ")",
        FROM,
    ),
    nest("nullif", S, "nullif(", "n", ", 1)", FROM),
    nest(
        "case of case",
        S,
        "case when ",
        "b",
        " then b when n=1 then true else n=2 end",
        FROM,
    ),
    nest(
        "case in else",
        S,
        "case when n=1 then 1 else ",
        "1",
        " end",
        FROM,
    ),
    chain(
        "case",
        "select case ",
        "when n=@ then @",
        " ",
        " end from t",
    ),
    chain(
        "case of truth",
        "select case ",
        "when n=@ then true",
        " ",
        " end from t",
    ),
    chain(
        "named windows",
        S,
        "sum(n) over w w@",
        ",",
        " from t window w as (order by n+m+1)",
    ),
    // Functions and lists.
    nest("functions", S, "abs(", "n", ")", FROM),
    nest("functions of text", S, "upper(", "s", ")", FROM),
    nest("substring", S, "substring(", "s", " from 1 for 3)", FROM),
    nest("extract", S, "extract(year from ", "now()", ")", FROM),
    nest("arrays", S, "[", "n", "]", FROM),
    nest("structs", S, "{a: ", "n", "}", FROM),
    chain("an array", "select [", "n", ",", "] from t"),
    chain("subscripts", "select [[[n]]]", "[1]", "", FROM),
    chain("arguments", "select coalesce(", "n", ",", ") from t"),
    chain("in list", "select n from t where n in (", "@", ",", ")"),
    chain(
        "values",
        "select * from t, (values ",
        "(@, 'a')",
        ",",
        ") v",
    ),
    chain("items", S, "n+@", ",", FROM),
    chain("items in common", S, "(n+m)*@", ",", FROM),
    chain("constants", S, "1 a@", ",", FROM),
    chain(
        "group by",
        "select count(*) from t group by ",
        "n+@",
        ",",
        "",
    ),
    chain(
        "cube",
        "select count(*) from t group by cube(",
        "n+@",
        ",",
        ")",
    ),
    chain(
        "rollup",
        "select count(*) from t group by rollup(",
        "n+@",
        ",",
        ")",
    ),
    chain(
        "rollups",
        "select count(*) from t group by ",
        "rollup(n+@, m+@)",
        ",",
        "",
    ),
    chain(
        "grouping sets",
        "select count(*) from t group by grouping sets(",
        "(n+@)",
        ",",
        ")",
    ),
    chain("order by", "select n from t order by ", "n+@", ",", ""),
    chain(
        "having",
        "select n from t group by n having ",
        "sum(m+@)>0",
        " and ",
        "",
    ),
    chain("aggregates", S, "sum(n+@)", ",", FROM),
    chain("distinct aggregates", S, "count(distinct n+@)", ",", FROM),
    chain(
        "windows",
        S,
        "row_number() over (order by n+@) w@",
        ",",
        FROM,
    ),
    // Queries.
    chain("union", "", "select n from t", " union ", ""),
    chain("union all", "", "select n from t", " union all ", ""),
    chain("intersect", "", "select n from t", " intersect ", ""),
    chain("except", "", "select n from t", " except ", ""),
    nest(
        "union in parentheses",
        "",
        "(",
        "select n from t",
        " union all select n from t)",
        "",
    ),
    nest(
        "subqueries",
        "select n from ",
        "(select n from ",
        "t",
        ")",
        "",
    ),
    nest(
        "subqueries that repeat",
        "select n from ",
        "(select n+n as n from ",
        "t",
        ")",
        " where n>1",
    ),
    nest(
        "scalar subqueries",
        "select n, ",
        "(select ",
        "1",
        ")",
        FROM,
    ),
    nest(
        "in a subquery",
        W,
        "n in (select n from t where ",
        "b",
        ")",
        "",
    ),
    chain(
        "exists",
        W,
        "exists (select 1 from t u where u.n=t.n+@)",
        " and ",
        "",
    ),
    nest(
        "exists of exists",
        W,
        "exists (select 1 from t where ",
        "b",
        ")",
        "",
    ),
    chain(
        "cte",
        C0,
        ", c@ as (select n from c#)",
        "",
        " select n from c#",
    ),
    chain(
        "cte of aggregates",
        C0,
        ", c@ as (select n+1 as n, count(*) c from c# group by n)",
        "",
        " select n from c#",
    ),
    chain(
        "cte of windows",
        C0,
        ", c@ as (select n, sum(n) over (order by n) c from c#)",
        "",
        " select n from c#",
    ),
    chain(
        "cte twice",
        C0,
        ", c@ as (select x.n from c# x join c# y on x.n=y.n)",
        "",
        " select n from c#",
    ),
    chain(
        "cte of all columns",
        C0,
        ", c@ as (select x.*, y.n a@ from c# x join c# y on x.n=y.n)",
        "",
        " select 1 from c#",
    ),
    chain(
        "cte in a union",
        C0,
        ", c@ as (select n from c# union all select n from c#)",
        "",
        " select n from c#",
    ),
    chain(
        "cte that repeats",
        C0,
        ", c@ as (select n+n as n from c#)",
        "",
        " select n from c# where n>1",
    ),
    chain(
        "cte with columns",
        C0,
        ", c@(n) as (select n+n from c#)",
        "",
        " select n from c# where n>1",
    ),
    chain(
        "pipes",
        "select n from t ",
        "|> select n+n as n ",
        "",
        "|> where n>1",
    ),
    chain(
        "join",
        "select t.n from t ",
        "join t t@ on t.n=t@.n",
        " ",
        "",
    ),
    chain(
        "join of all columns",
        "select * from t ",
        "join t t@ on t.n=t@.n",
        " ",
        "",
    ),
    chain(
        "left join",
        "select t.n from t ",
        "left join t t@ on t.n=t@.n",
        " ",
        " where t.n>3",
    ),
    chain(
        "cross join",
        "select t.n from t,",
        "t t@",
        ",",
        " where t.n=1 limit 1",
    ),
    nest(
        "join in parentheses",
        "select 1 from ",
        "(",
        "t",
        " cross join t)",
        "",
    ),
    chain(
        "join on ors",
        "select t.n from t join t u on ",
        "(t.n=u.n+@ and t.m=u.m)",
        " or ",
        "",
    ),
];

/// The parser tries what is in these brackets in several ways, and in the innermost is an error.
pub const BROKEN: &[Production] = &[
    nest("not", W, "not (", "1 1", "", ""),
    nest("position", S, "position(", "1 1", "", ""),
    nest("cast", S, "cast(", "1 1", "", ""),
    nest("array", S, "array[", "1 1", "", ""),
    nest("in", W, "n in ((select n from t where ", "1 1", "", ""),
    nest("from", "select ", "1 from ((select ", "1 1", "", ""),
];
