// Package filesource reads rule files from a directory and tells when they
// change.
//
// # Layouts
//
// With WatchRoot the root is a symbolic link that is swapped to publish a new
// tree: files are those below Root/Subdirectory whose name, with dots for
// slashes, begins with "AppDirectory.". The swap is the change; edits in place
// are not noticed. Without a Subdirectory nothing is read. So a file
// Root/Subdirectory/config.yaml is read too, and an AppDirectory of several
// levels never fits; all of that is as in envoyproxy/ratelimit.
//
// Without WatchRoot the files are all those below Root/Subdirectory/
// AppDirectory, whatever they are called. Every change of a file or directory
// in there is noticed, and so is the replacement of the directory itself. A
// Kubernetes ConfigMap is mounted this way, with IgnoreDotFiles: the kubelet
// swaps the link "..data", to which the files are links.
//
// Symbolic links to files are followed, links to directories are not (except
// that the root of the walk may be one). What is neither file nor directory is
// not read.
//
// # Failure
//
// A directory that is not there holds no files. A file that cannot be read is
// returned with its error, so that the rules it gave before stay. A half
// written file is a bad file to the loader, until the next change.
package filesource
