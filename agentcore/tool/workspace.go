package tool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"parley/store/record"
)

// Workspace is the folder in which each conversation has a folder of its own: the
// working folder of its commands and the root of its files. The zero value has none.
type Workspace struct{ root string }

// NewWorkspace names the folder; it is made when it is first needed.
func NewWorkspace(folder string) (Workspace, error) {
	if folder == "" {
		return Workspace{}, errors.New("tool: no workspace folder is given")
	}
	root, err := filepath.Abs(folder)
	if err != nil {
		return Workspace{}, fmt.Errorf("tool: the workspace: %w", err)
	}
	return Workspace{root: root}, nil
}

// Folder makes a conversation's folder, for this account's eyes only, and returns
// its absolute path. A turn without a conversation works in "default".
func (w Workspace) Folder(c record.ConversationID) (string, error) {
	name := string(c)
	if name == "" {
		name = "default"
	}
	if w.root == "" || !filepath.IsLocal(name) || filepath.Base(name) != name {
		return "", fmt.Errorf("tool: %q is no name for a folder in a workspace", name)
	}
	dir := filepath.Join(w.root, name)
	return dir, os.MkdirAll(dir, 0o700)
}

// Open opens a conversation's folder as a root that nothing leaves: not by `..`, not
// by a link, not by one that is put in place while a call runs. It also returns the
// folder's path, for people. The caller closes the root.
func (w Workspace) Open(c record.ConversationID) (*os.Root, string, error) {
	dir, err := w.Folder(c)
	if err != nil {
		return nil, "", err
	}
	all, err := os.OpenRoot(w.root)
	if err != nil {
		return nil, "", err
	}
	defer all.Close()
	// A link in the folder's place is somebody else's folder.
	if info, err := all.Lstat(filepath.Base(dir)); err != nil {
		return nil, "", err
	} else if !info.IsDir() {
		return nil, "", fmt.Errorf("tool: the folder %s is a link", filepath.Base(dir))
	}
	root, err := all.OpenRoot(filepath.Base(dir))
	return root, dir, err
}
