//! The signature of webhooks, verified by Stripe's unmodified libraries. Stripe designed the scheme.

use std::path::{Path, PathBuf};
use std::process::Command;

use blockbase_tests::{Engine, Receiver, lock, target_directory};
use serde_json::json;

use crate::events::webhooks::{make, quick};

/// Checks that a program makes for each secret, and those that it makes once.
const CHECKS_A_SECRET: usize = 8;
const CHECKS_OF_ALL: usize = 1;

const JAVASCRIPT: Library = Library {
    directory: "stripe-javascript",
    files: &[
        ("package-lock.json", include_str!("../../../clients/stripe/package-lock.json")),
        ("package.json", include_str!("../../../clients/stripe/package.json")),
        ("verify.mjs", include_str!("../../../clients/stripe/verify.mjs")),
        ("sign.mjs", include_str!("../../../clients/stripe/sign.mjs")),
    ],
    install: &["npm ci --ignore-scripts --no-audit --no-fund"],
    verify: "node verify.mjs",
};

const PYTHON: Library = Library {
    directory: "stripe-python",
    files: &[
        ("requirements.txt", include_str!("../../../clients/stripe/requirements.txt")),
        ("verify.py", include_str!("../../../clients/stripe/verify.py")),
    ],
    install: &[
        "python3 -m venv --clear venv",
        "venv/bin/pip install --quiet --disable-pip-version-check --require-hashes --no-deps --only-binary :all: -r requirements.txt",
    ],
    verify: "venv/bin/python verify.py",
};

/// A library, and a program that verifies a webhook with it.
struct Library {
    directory: &'static str,
    /// The first file pins the versions of the packages.
    files: &'static [(&'static str, &'static str)],
    install: &'static [&'static str],
    verify: &'static str,
}

/// A command in `directory`. Spaces separate its words.
fn command(words: &str, directory: &Path) -> Command {
    let mut words = words.split(' ');
    let name = words.next().unwrap();
    // The path of the program: in the directory, if it exists there.
    let program = if name.contains('/') { directory.join(name) } else { PathBuf::from(name) };
    let mut command = Command::new(program);
    command.args(words).current_dir(directory);
    command
}

impl Library {
    /// Installs the pinned packages, once for each pinning file, in a folder below cargo's.
    fn installed(&self) -> PathBuf {
        // One installation at a time, because several tests want the same packages.
        let _installing = lock(self.directory);
        let directory = target_directory().join(self.directory);
        std::fs::create_dir_all(&directory).unwrap();
        let installed = directory.join("installed");
        let pins = self.files[0].1;
        let is_installed = std::fs::read_to_string(&installed).is_ok_and(|known| known == pins);
        for (name, text) in self.files {
            let file = directory.join(name);
            // Equal files are not written again, because a running program may be reading them.
            if !std::fs::read_to_string(&file).is_ok_and(|known| known == *text) {
                std::fs::write(file, text).unwrap();
            }
        }
        if !is_installed {
            for step in self.install {
                let done = command(step, &directory).output().expect("npm (Node 20 or newer), python3 with venv");
                assert!(done.status.success(), "{step}: {}", String::from_utf8_lossy(&done.stderr));
            }
            std::fs::write(installed, pins).unwrap();
        }
        directory
    }

    /// Verifies with the library what was received. The webhook was signed with these secrets.
    fn verify(&self, signed: &Signed) {
        let directory = self.installed();
        let body = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(body.path(), &signed.body).unwrap();
        let mut command = command(self.verify, &directory);
        let ran = command.arg(body.path()).arg(&signed.header).args(&signed.secrets).output().expect("the program");
        let (checks, problem) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert!(ran.status.success(), "{}: after\n{checks}\n{problem}", self.verify);
        assert_eq!(checks.lines().count(), CHECKS_A_SECRET * signed.secrets.len() + CHECKS_OF_ALL, "{checks}");
    }
}

/// The header `Stripe-Signature` of `age_seconds` ago, made by Stripe's own library.
pub(crate) async fn signature_by_the_library(body: &'static str, secret: &'static str, age_seconds: u64) -> String {
    tokio::task::spawn_blocking(move || {
        let directory = JAVASCRIPT.installed();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), body).unwrap();
        let mut command = command("node sign.mjs", &directory);
        let ran = command.arg(file.path()).arg(secret).arg(age_seconds.to_string()).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap().trim().to_owned()
    })
    .await
    .unwrap()
}

/// A received webhook.
struct Signed {
    body: Vec<u8>,
    header: String,
    secrets: Vec<String>,
}

/// The webhooks that are sent before and during a rotation of the secret.
async fn received() -> [Signed; 2] {
    // Signing does not depend on the database, so one engine is enough.
    let server = quick(Engine::Sqlite).start().await;
    let admin = server.admin().await;
    admin.make_task_object().await;
    let receiver = Receiver::start().await;
    let (id, first) = make(&admin, json!({ "url": receiver.url, "topics": ["data.#"] })).await;
    // A program that parses the body and writes it again would change this text.
    admin.post("/api/v1/data/task", json!({ "title": "é\u{2028}\"\\/ \u{1f600} 1.0" })).await.data();
    receiver.wait_for(1).await;
    let rotated = admin.post(&format!("/api/v1/webhooks/{id}/rotate-secret"), json!({})).await;
    let second = rotated.json()["secret"].as_str().unwrap().to_owned();
    admin.post("/api/v1/data/task", json!({ "title": "during the rotation" })).await.data();
    let received = receiver.wait_for(2).await;
    let signed = |place: usize, secrets: Vec<String>| {
        let header = received[place].header("x-svc-signature").to_owned();
        Signed { body: received[place].body.to_vec(), header, secrets }
    };
    [signed(0, vec![first.clone()]), signed(1, vec![second, first])]
}

async fn is_verified_by(library: &'static Library) {
    let all = received().await;
    tokio::task::spawn_blocking(move || all.iter().for_each(|signed| library.verify(signed))).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stripes_javascript_library_verifies_the_signature_of_webhooks() {
    is_verified_by(&JAVASCRIPT).await;
}

#[ignore = "long: a further language of the same check"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stripes_python_library_verifies_the_signature_of_webhooks() {
    is_verified_by(&PYTHON).await;
}
