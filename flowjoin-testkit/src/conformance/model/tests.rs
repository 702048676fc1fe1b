use super::*;

fn parse(text: &str) -> Result<CaseFile, ReadError> {
    CaseFile::parse(text, Path::new("some.json"))
}

fn said(cases: &str) -> String {
    parse(&format!(r#"{{"schema":1,"cases":[{cases}]}}"#)).unwrap_err().to_string()
}

#[test]
fn a_case_has_defaults() {
    let text = r#"{"schema":1,"family":"f","cases":[{"id":"x","operator":"watermark_merge","config":{"channels":1},
        "notes":["a"],"sql_check":false,"confidence":"medium","steps":[{"op":"watermark","t":7}]}]}"#;
    let case = &parse(text).unwrap().cases[0];
    assert_eq!(case.steps[0].action, Action::Watermark { input: 0, t: 7 });
    assert!(case.changelog_check && case.order == Order::Any && case.expect_error.is_none() && case.strict.is_empty());
}

#[test]
fn a_file_of_something_else_is_refused_with_its_place() {
    let said = |text: &str| parse(text).unwrap_err().to_string();
    assert_eq!(
        said("{\"schema\":1,\n\"casse\":[]}"),
        "some.json is not a file of conformance cases: unknown field `casse`, expected one of `schema`, `family`, `cases` \
         at line 2 column 7"
    );
    assert!(said("<html>").ends_with("expected value at line 1 column 1"));
    assert_eq!(said("{\"schema\":2,\"cases\":[]}"), "some.json is of schema 2; this runner reads schema 1");
    let missing = CaseFile::read(Path::new("no/such/file.json")).unwrap_err();
    assert_eq!(missing.to_string(), "no/such/file.json cannot be read");
}

#[test]
fn a_case_that_is_not_of_the_format_is_told_with_its_file_and_id() {
    let case = |rest: &str| said(&format!(r#"{{"id":"x","operator":"watermark_merge","steps":[],{rest}}}"#));
    assert!(case(r#""verdct":"match""#).starts_with("some.json, case x: unknown field `verdct`, expected one of `id`"));
    assert!(case(r#""order":"some""#).contains("case x: unknown variant `some`"));
    assert!(case(r#""strict":["out"]"#).contains("case x: unknown variant `out`"));
    assert!(case(r#""confidence":"low""#).contains("case x: unknown variant `low`"));
    assert!(case(r#""expect_error":{"phase":"late"}"#).contains("case x: unknown variant `late`"));
    let beyond = "some.json, case x: an error is expected at step 3, and there are 0 steps";
    assert_eq!(case(r#""expect_error":{"phase":"step","step":3}"#), beyond);
    assert_eq!(said(r#"{"operator":"watermark_merge","steps":[]}"#), "some.json, case number 0: missing field `id`");
    let step = r#"{"id":"x","operator":"watermark_merge","steps":[{"op":"idle"},{"op":"dance"}]}"#;
    assert!(said(step).starts_with("some.json, case x: step 1: unknown variant `dance`"));
}

#[test]
fn operators_options_and_fields_must_be_there() {
    let case = |operator: &str, config: &str, steps: &str| {
        said(&format!(r#"{{"id":"x","operator":"{operator}","config":{config},"steps":[{steps}]}}"#))
    };
    assert_eq!(case("regular_jion", "{}", ""), "some.json, case x: there is no operator `regular_jion`");
    let size = case("regular_join", r#"{"size":1}"#, "");
    assert_eq!(size, "some.json, case x: regular_join has no option `size`; there are type, inputs, where");
    assert!(case("regular_join", "[1]", "").ends_with("case x: `config` is [1], and not an object"));
    let input = |input: &str, steps: &str| {
        case("regular_join", &format!(r#"{{"inputs":[{{"name":"L","fields":["k","v"],{input}}}]}}"#), steps)
    };
    assert!(input(r#""ttl":5"#, "").contains("case x: `inputs`: unknown field `ttl`"));
    assert!(input(r#""key":["kk"]"#, "").ends_with("case x: the input `L` has no field `kk`"));
    let record = |rest: &str| input(r#""key":["k"]"#, &format!(r#"{{"op":"record","kind":"+I",{rest}}}"#));
    assert!(record(r#""row":[1]"#).ends_with("step 0: a row of 1 values, where `L` has 2 fields"));
    assert!(record(r#""row":[1,2],"input":1"#).ends_with("step 0: there is no input 1"));
    assert!(record(r#""row":[]"#).ends_with("case x: step 0: a record has a row without values"));
    assert!(record(r#""rwo":[1]"#).contains("case x: step 0: unknown field `rwo`"));
}

#[test]
fn an_id_is_had_once_over_all_files() {
    let case = |id: &str| format!(r#"{{"id":"{id}","operator":"watermark_merge","steps":[]}}"#);
    let twice = said(&[case("x"), case("y"), case("x")].join(","));
    assert_eq!(twice, "some.json, case x: another case of the file has this id");
    let folder = std::env::temp_dir().join(format!("flowjoin-case-ids-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let paths: Vec<PathBuf> = ["a.json", "b.json", "c.json"].iter().map(|name| folder.join(name)).collect();
    for (path, cases) in paths.iter().zip([[case("x"), case("y")], [case("z"), case("y")], [case("v"), case("w")]]) {
        std::fs::write(path, format!(r#"{{"schema":1,"cases":[{}]}}"#, cases.join(","))).unwrap();
    }
    let read = CaseFile::read_all(&paths);
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(read[0].is_ok() && read[2].is_ok());
    let text = read[1].as_ref().unwrap_err().to_string();
    assert!(text.contains("b.json, case y: ") && text.ends_with("a.json has a case with this id"), "{text}");
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let text = said(r#"{"id":"x","operator":"a","steps":[]},{"id":"y","operator":"b","steps":[]}"#);
    assert_eq!(text, "some.json, case x: there is no operator `a`\nsome.json, case y: there is no operator `b`");
}
