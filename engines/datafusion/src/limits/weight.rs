//! What a statement grows to while DataFusion plans it.
//!
//! DataFusion writes out what a text names: a CTE wherever it is read, an item of an inner `select`
//! wherever an outer filter uses it, the operand of `between`, `in` and `coalesce` once for each
//! comparison. `x between a and b`, nested `n` times, becomes `2^n` comparisons, and no count of
//! tokens shows that. So each query has a weight, an upper bound of the expressions that it is
//! planned with, and a depth, one of the longest path in them. Neither looks at scopes: a name that
//! stands for several things counts as the heaviest.

use std::cmp::max;
use std::collections::HashMap;
use std::mem::take;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, GroupByExpr, ObjectName, Query, Select, SelectItem, SetExpr, SetOperator,
    TableAlias, TableFactor, TableWithJoins, Value, Visit, Visitor,
};

/// The levels that a join counts for. Planning one takes as long as planning that many operators.
const JOIN: usize = 4;
/// The expressions that a table counts for, at each place.
const TABLE: u64 = 100;
/// The levels that one of a nested type counts for: each function on it needs that much stack.
const TYPE: usize = 8;
/// The copies that DataFusion makes at most of an operand that it compares with a short list, or
/// with the alternatives of a regular expression.
const COPIES: u64 = 4;
const COPYING: [&str; 7] = [
    "array_contains",
    "array_has",
    "coalesce",
    "ifnull",
    "list_contains",
    "list_has",
    "nvl",
];

/// Which limit a statement exceeds, and with what.
pub(super) enum TooMuch {
    Depth(usize),
    Weight(u64),
}

/// Walks `statement` up to the first place that exceeds `depth` or `weight`.
pub(super) fn weigh(statement: &impl Visit, depth: usize, weight: u64) -> Result<(), TooMuch> {
    match statement.visit(&mut Scales::new(depth, weight)) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(too_much) => Err(too_much),
    }
}

/// By the names of columns. What has none has the empty name, and may stand for each.
type Weights = HashMap<String, u64>;

fn add(weights: &mut Weights, name: String, weight: u64) {
    let sum = weights.entry(name).or_default();
    *sum = sum.saturating_add(weight);
}

fn add_max(weights: &mut Weights, more: &Weights) {
    for (name, weight) in more {
        let heaviest = weights.entry(name.clone()).or_default();
        *heaviest = max(*heaviest, *weight);
    }
}

/// Expressions: their nodes, and how often each column is one.
#[derive(Clone, Default)]
struct Exprs {
    nodes: u64,
    columns: Weights,
}

impl Exprs {
    fn of(part: &impl Visit) -> Self {
        let mut scales = Scales::new(usize::MAX, u64::MAX);
        let _ = part.visit(&mut scales);
        take(&mut scales.frame().own)
    }

    /// Their nodes once the columns are what the queries of `input` make of them.
    fn weight(&self, input: &Weights) -> u64 {
        let columns = self.columns.iter().map(|(name, count)| {
            let weight = max(input.get(name), input.get("")).copied();
            count.saturating_mul(weight.unwrap_or(1).saturating_sub(1))
        });
        columns.fold(self.nodes, u64::saturating_add)
    }
}

fn heaviest(weights: &Weights) -> u64 {
    weights.values().copied().max().unwrap_or(1)
}

/// Each column that `alias` names may be any.
fn rename(columns: &mut Weights, alias: Option<&TableAlias>) {
    let most = heaviest(columns);
    for column in alias.iter().flat_map(|alias| &alias.columns) {
        columns.insert(column.name.value.to_lowercase(), most);
    }
}

/// A query that is being walked, or one that is known by name.
#[derive(Clone)]
struct Frame {
    /// How many copies each expression that is being walked makes of its operands, and of itself.
    copies: Vec<u64>,
    own: Exprs,
    /// How often it makes each of its expressions.
    times: u64,
    /// The items of the `select` that is being walked.
    items: Vec<(String, Exprs)>,
    /// The columns of the queries that it reads, and the weights of these together.
    input: Weights,
    read: u64,
    output: Weights,
    /// The depth where it stands, and the greatest in it.
    base: usize,
    deepest: usize,
}

impl Frame {
    fn at(depth: usize) -> Self {
        Self {
            copies: Vec::new(),
            own: Exprs::default(),
            times: 1,
            items: Vec::new(),
            input: Weights::new(),
            read: 1,
            output: Weights::new(),
            base: depth,
            deepest: depth,
        }
    }

    fn weight(&self) -> u64 {
        let own = self.own.weight(&self.input).saturating_mul(self.times);
        own.saturating_add(self.read)
    }
}

struct Scales {
    most_depth: usize,
    most_weight: u64,
    depth: usize,
    /// The first is that of the statement.
    frames: Vec<Frame>,
    names: HashMap<*const Query, TableAlias>,
    ctes: HashMap<String, Frame>,
}

impl Scales {
    fn new(most_depth: usize, most_weight: u64) -> Self {
        Self {
            most_depth,
            most_weight,
            depth: 0,
            frames: vec![Frame::at(0)],
            names: HashMap::new(),
            ctes: HashMap::new(),
        }
    }

    fn frame(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("the statement's")
    }

    fn deepen(&mut self, by: usize) -> ControlFlow<TooMuch> {
        self.depth += by;
        self.reach(self.depth)
    }

    fn reach(&mut self, depth: usize) -> ControlFlow<TooMuch> {
        let frame = self.frame();
        frame.deepest = max(frame.deepest, depth);
        match depth > self.most_depth {
            true => ControlFlow::Break(TooMuch::Depth(depth)),
            false => ControlFlow::Continue(()),
        }
    }

    /// Adds a query to the one that reads it, at each place.
    fn read(&mut self, query: &Frame) -> ControlFlow<TooMuch> {
        let most = self.most_weight;
        let frame = self.frame();
        frame.read = frame.read.saturating_add(query.weight());
        add_max(&mut frame.input, &query.output);
        match frame.weight() {
            weight if weight > most => ControlFlow::Break(TooMuch::Weight(weight)),
            _ => ControlFlow::Continue(()),
        }
    }
}

fn joins(table: &TableWithJoins) -> usize {
    1 + table.joins.len() * JOIN
}

fn tables(select: &Select) -> usize {
    let from: usize = select.from.iter().map(joins).sum();
    from + select.from.len().saturating_sub(1) * JOIN
}

fn levels(table: &TableFactor) -> usize {
    match table {
        TableFactor::NestedJoin {
            table_with_joins, ..
        } => joins(table_with_joins),
        _ => 1,
    }
}

fn operations(query: &Query) -> usize {
    let (mut bodies, mut count) = (vec![&*query.body], 1 + query.pipe_operators.len());
    while let Some(body) = bodies.pop() {
        if let SetExpr::SetOperation {
            op, left, right, ..
        } = body
        {
            bodies.extend([&**left, &**right]);
            count += if *op == SetOperator::Union { 1 } else { JOIN };
        }
    }
    count
}

/// The grouping sets of one element. Those of all are multiplied.
fn sets(element: &Expr) -> u64 {
    match element {
        Expr::Cube(of) => 1_u64.checked_shl(of.len() as u32).unwrap_or(u64::MAX),
        Expr::Rollup(of) => of.len() as u64 + 1,
        Expr::GroupingSets(of) => of.len() as u64,
        _ => 1,
    }
}

fn copies(expr: &Expr) -> u64 {
    let is_bool =
        |expr: &Expr| matches!(expr, Expr::Value(v) if matches!(v.value, Value::Boolean(_)));
    match expr {
        Expr::Between { .. } => 2,
        Expr::InList { list, .. } if list.len() < COPIES as usize => COPIES,
        Expr::SimilarTo { .. } | Expr::RLike { .. } => COPIES,
        Expr::BinaryOp { op, .. } => match op {
            BinaryOperator::PGRegexMatch | BinaryOperator::PGRegexIMatch => COPIES,
            BinaryOperator::PGRegexNotMatch | BinaryOperator::PGRegexNotIMatch => COPIES,
            _ => 1,
        },
        // What is a condition is written out, if it has few arms.
        Expr::Case { conditions, .. } => {
            let arms = conditions.len();
            match arms < 3 || conditions.iter().all(|arm| is_bool(&arm.result)) {
                true => 1 + arms as u64,
                false => 1,
            }
        }
        Expr::Function(function) if COPYING.contains(&&*name(&function.name)) => COPIES,
        _ => 1,
    }
}

/// The last part of a name.
fn name(of: &ObjectName) -> String {
    let last = of.0.last().and_then(|part| part.as_ident());
    last.map_or_else(String::new, |last| last.value.to_lowercase())
}

fn column(expr: &Expr) -> Option<String> {
    let last = match expr {
        Expr::Identifier(name) => name,
        Expr::CompoundIdentifier(names) => names.last()?,
        _ => return None,
    };
    Some(last.value.to_lowercase())
}

/// The levels that the plan of the query has for what `expr` itself is.
fn operator(expr: &Expr) -> usize {
    match expr {
        Expr::Function(function) if function.over.is_some() => JOIN,
        Expr::Exists { .. } | Expr::InSubquery { .. } | Expr::Subquery(_) => JOIN,
        _ => 0,
    }
}

/// The levels of a type that `expr` names, such as `array<array<int>>`.
fn type_levels(expr: &Expr) -> usize {
    match expr {
        Expr::Cast { data_type, .. } => {
            TYPE * data_type.to_string().matches(['<', '[', '(']).count()
        }
        _ => 0,
    }
}

fn is_wildcard(item: &SelectItem) -> bool {
    matches!(
        item,
        SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)
    )
}

impl Visitor for Scales {
    type Break = TooMuch;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<TooMuch> {
        self.frames.push(Frame::at(self.depth));
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.names.insert(&raw const *cte.query, cte.alias.clone());
        }
        // Each may write out what the one before has made.
        for pipe in &query.pipe_operators {
            let most = Exprs::of(pipe).columns.into_values().max().unwrap_or(1);
            let frame = self.frame();
            frame.times = frame.times.saturating_mul(most);
        }
        self.deepen(operations(query))
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<TooMuch> {
        let mut done = self.frames.pop().expect("pushed before");
        self.depth = done.base;
        let outer = self.frame();
        outer.deepest = max(outer.deepest, done.deepest);
        if !query.pipe_operators.is_empty() {
            let most = heaviest(&done.output).saturating_mul(done.times);
            done.output.insert(String::new(), most);
        }
        let Some(alias) = self.names.remove(&(&raw const *query)) else {
            return self.read(&done);
        };
        rename(&mut done.output, Some(&alias));
        let name = alias.name.value.to_lowercase();
        if let Some(other) = self.ctes.get(&name) {
            done.read = max(done.weight(), other.weight());
            done.own = Exprs::default();
            add_max(&mut done.output, &other.output);
            done.deepest += other.deepest - other.base;
        }
        self.ctes.insert(name, done);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<TooMuch> {
        let items = select.projection.iter().map(|item| {
            let name = match item {
                SelectItem::UnnamedExpr(expr) => column(expr),
                SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.to_lowercase()),
                _ => None,
            };
            (name.unwrap_or_default(), Exprs::of(item))
        });
        self.frame().items = items.collect();
        if let GroupByExpr::Expressions(elements, _) = &select.group_by {
            let sets = elements.iter().map(sets).fold(1, u64::saturating_mul);
            self.frame().times = max(self.frame().times, sets);
        }
        // Each item may write out a window that has a name.
        if !select.named_window.is_empty() {
            let frame = self.frame();
            frame.times = frame.times.saturating_mul(select.projection.len() as u64);
        }
        self.deepen(tables(select))
    }

    fn post_visit_select(&mut self, select: &Select) -> ControlFlow<TooMuch> {
        self.depth -= tables(select);
        let frame = self.frame();
        for (name, exprs) in take(&mut frame.items) {
            let weight = exprs.weight(&frame.input);
            add_max(&mut frame.output, &Weights::from([(name, weight)]));
        }
        if select.projection.iter().any(is_wildcard) {
            add_max(&mut frame.output, &frame.input);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<TooMuch> {
        let frame = self.frame();
        frame.read = frame.read.saturating_add(TABLE);
        self.deepen(levels(table))
    }

    fn post_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<TooMuch> {
        self.depth -= levels(table);
        if let TableFactor::Table { alias, .. } | TableFactor::Derived { alias, .. } = table {
            rename(&mut self.frame().input, alias.as_ref());
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<TooMuch> {
        let Some(cte) = self.ctes.get(&name(relation)).cloned() else {
            return ControlFlow::Continue(());
        };
        self.reach(self.depth + (cte.deepest - cte.base))?;
        self.read(&cte)
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<TooMuch> {
        let frame = self.frame();
        let count = frame.copies.last().copied().unwrap_or(1);
        frame.copies.push(count.saturating_mul(copies(expr)));
        frame.own.nodes = frame.own.nodes.saturating_add(count);
        if let Some(name) = column(expr) {
            add(&mut frame.own.columns, name, count);
        }
        self.deepen(1)?;
        self.reach(self.depth + type_levels(expr))?;
        // Until the query ends.
        self.deepen(operator(expr))
    }

    fn post_visit_expr(&mut self, _: &Expr) -> ControlFlow<TooMuch> {
        self.depth -= 1;
        self.frame().copies.pop();
        ControlFlow::Continue(())
    }
}
