//! No code: one set of features of shared dependencies for every build of this workspace. The
//! manifest says why.
