//! The dashboard's file: what it asks.

use serde_json::Value;

use crate::service::Error;

pub(crate) struct Dashboard {
    pub(crate) panels: Vec<Panel>,
    pub(crate) variables: Vec<Variable>,
}

#[derive(Clone)]
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) unit: String,
    pub(crate) queries: Vec<Query>,
}

#[derive(Clone)]
pub(crate) struct Query {
    pub(crate) expression: String,
    /// With labels in double braces.
    pub(crate) legend: String,
}

/// A variable with the values of a label: `label_values(selector, label)`.
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) selector: String,
    pub(crate) label: String,
}

impl Dashboard {
    pub(crate) fn read() -> Result<Self, Error> {
        let text = std::fs::read_to_string("docs/grafana/twolane.json")?;
        let all: Value = serde_json::from_str(&text)?;
        let panels = list(&all["panels"])?.iter().map(panel);
        let variables = list(&all["templating"]["list"])?.iter();
        let variables = variables.filter(|one| one["type"] == "query");
        Ok(Self {
            panels: panels.collect::<Result<_, _>>()?,
            variables: variables.map(variable).collect::<Result<_, _>>()?,
        })
    }
}

fn panel(json: &Value) -> Result<Panel, Error> {
    let query = |target: &Value| {
        Ok::<_, Error>(Query {
            expression: text(&target["expr"])?,
            legend: text(&target["legendFormat"])?,
        })
    };
    let queries = list(&json["targets"])?.iter().map(query);
    Ok(Panel {
        title: text(&json["title"])?,
        unit: text(&json["fieldConfig"]["defaults"]["unit"])?,
        queries: queries.collect::<Result<_, _>>()?,
    })
}

fn variable(json: &Value) -> Result<Variable, Error> {
    let definition = text(&json["definition"])?;
    let values = definition.strip_prefix("label_values(");
    let values = values.and_then(|values| values.strip_suffix(')')?.rsplit_once(", "));
    let (selector, label) = values.ok_or_else(|| format!("no label_values: {definition}"))?;
    Ok(Variable {
        name: text(&json["name"])?,
        selector: selector.to_owned(),
        label: label.to_owned(),
    })
}

fn list(json: &Value) -> Result<&Vec<Value>, Error> {
    let filled = json.as_array().filter(|list| !list.is_empty());
    Ok(filled.ok_or_else(|| format!("no list, or an empty one: {json}"))?)
}

fn text(json: &Value) -> Result<String, Error> {
    Ok(json
        .as_str()
        .ok_or_else(|| format!("no text: {json}"))?
        .to_owned())
}
