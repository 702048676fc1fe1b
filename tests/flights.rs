//! The questions of `examples/flights.rs`, against the digits that a database computed over the same tables.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use flowjoin::Config;

#[path = "../examples/flights.rs"]
#[allow(dead_code)]
mod flights;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_answers_are_those_of_a_database_and_no_row_is_late() {
    for parallelism in [1, 3] {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/nycflights");
        let scratch = std::env::temp_dir().join(format!("flowjoin-flights-{}-{parallelism}", std::process::id()));
        let config = Config::default().quiet().with_parallelism(parallelism);
        let answers = flights::answers(&data, &scratch, &config).await.unwrap();
        std::fs::remove_dir_all(&scratch).unwrap();

        let got: Vec<Vec<i64>> = answers.iter().map(|answer| answer.got.clone()).collect();
        let weather = vec![80_861, 4_852_080];
        let fleet = vec![22_525, 4_479, 155, 2_609, 713, 27_717, 4_479, 713, 3_075_040];
        assert_eq!(
            got,
            [
                weather.clone(),
                weather,
                vec![27_004, 4_479, 155, 3_075_040],
                fleet,
                vec![51_142],
                vec![852, 10_955, 51_142]
            ]
        );
        for answer in &answers {
            let report = &answer.report;
            assert!(report.is_balanced(), "{report}");
            for input in report.steps.iter().flat_map(|step| &step.inputs) {
                assert_eq!((input.account.late, input.account.bad, input.account.open), (0, 0, 0), "{report}");
            }
        }
        // A null tail number matches nothing; the flight is in the result all the same.
        let planes = answers[2].report.steps.iter().find(|step| step.kind == "join").unwrap();
        assert_eq!(planes.inputs[0].account.null_key, 155);
        assert_eq!(planes.inputs[0].account.matched, 22_525);
        let matched = |step: &str, input: usize| answers[3].report.step(step).unwrap().inputs[input].account.matched;
        for step in ["known", "unknown", "all"] {
            assert_eq!([matched(step, 0), matched(step, 1)], [22_525, 2_609], "{step}");
        }
        for step in ["flew", "stayed"] {
            assert_eq!([matched(step, 0), matched(step, 1)], [2_609, 22_525], "{step}");
        }
    }
}
