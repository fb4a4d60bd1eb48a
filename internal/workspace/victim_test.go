package workspace_test

func victim(string) {}
