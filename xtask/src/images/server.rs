//! The image of the real OpenSandbox server, as `PyPI` has it.

use std::env::consts::ARCH;
use std::fs;

use super::{Image, content, make as make_image};
use crate::{Result, command, python};

pub(crate) const NAME: &str = "opensandbox-server";

/// The Python of the image below, whose release of Debian has it.
const PYTHON: &str = "3.11";

const DOCKERFILE: &str = include_str!("../../images/opensandbox-server/Dockerfile");
const REQUIREMENTS: &str = include_str!("../../python/opensandbox-server.txt");
const START: &str = include_str!("../../images/opensandbox-server/start.sh");

pub(super) fn make() -> Result<Image> {
    let base = make_image("python")?.tagged();
    let image = Image::new(NAME, content([&base, DOCKERFILE, REQUIREMENTS, START]));
    image.make(|folder| {
        fs::write(folder.join("Dockerfile"), DOCKERFILE)?;
        fs::write(folder.join("start.sh"), START)?;
        command::executable(&folder.join("start.sh"))?;
        let requirements = folder.join("requirements.txt");
        fs::write(&requirements, REQUIREMENTS)?;
        // What the image's Python runs, whatever runs here.
        let mut install = python::pip()?;
        install.args([
            "install",
            "--no-deps",
            "--no-compile",
            "--only-binary=:all:",
        ]);
        install.args(["--implementation", "cp", "--python-version", PYTHON]);
        for libc in ["manylinux2014", "manylinux_2_28"] {
            install.arg("--platform").arg(format!("{libc}_{ARCH}"));
        }
        install.arg("--target").arg(folder.join("site"));
        command::run(install.arg("--requirement").arg(&requirements))?;
        image.build(folder, &["--build-arg", &format!("BASE={base}")])
    })?;
    Ok(image)
}
