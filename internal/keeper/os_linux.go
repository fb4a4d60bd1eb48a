package keeper

import "golang.org/x/sys/unix"

// Magic numbers of file systems on which locks and notifications between machines don't hold.
var networkSystems = map[int64]string{
	unix.NFS_SUPER_MAGIC: "NFS", unix.SMB_SUPER_MAGIC: "SMB", 0xff534d42: "CIFS", 0xfe534d42: "SMB2",
	unix.V9FS_MAGIC: "9p", unix.AFS_SUPER_MAGIC: "AFS", unix.CODA_SUPER_MAGIC: "Coda", 0x00c36400: "Ceph", 0x0bd00bd0: "Lustre",
}

func networkSystem(dir string) string {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return ""
	}
	return networkSystems[int64(s.Type)&0xffffffff]
}
