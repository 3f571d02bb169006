package sparkapp;

import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Files;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFs;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FsServerDefaults;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.local.LocalConfigKeys;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's file system of local disks, which sets permissions and looks for links by Java.
 *
 * <p>Without its native library, which Spark does not bring, Hadoop starts a process for each: chmod for a file or folder
 * that it creates, readlink for a file that it renames. What is on the disk is the same. See
 * docs/decisions/0038-local-files-without-processes.md.
 */
public class JavaLocalFileSystem extends LocalFileSystem {
    public JavaLocalFileSystem() {
        super(new Raw());
    }

    /** The same without checksums. */
    static class Raw extends RawLocalFileSystem {
        private static final int SET_IDS = 06000;
        private static final int ALL = 0777;

        /** As chmod does, which leaves a folder its bits that set the user or the group of what is in it. */
        @Override
        public void setPermission(Path path, FsPermission permission) throws IOException {
            File file = pathToFile(path);
            int mode = permission.toShort() & (ALL | 01000);
            if (file.isDirectory()) {
                mode |= (int) Files.getAttribute(file.toPath(), "unix:mode") & SET_IDS;
            }
            Files.setAttribute(file.toPath(), "unix:mode", mode);
        }

        @Override
        public FileStatus getFileLinkStatus(Path path) throws IOException {
            boolean isLink = Files.isSymbolicLink(pathToFile(path).toPath());
            return isLink ? super.getFileLinkStatus(path) : getFileStatus(path);
        }
    }

    /** The same for what asks for a FileContext: Delta's log, and the checkpoints of streaming queries. */
    public static class Fs extends ChecksumFs {
        public Fs(URI uri, Configuration configuration) throws IOException, URISyntaxException {
            super(new RawFs(uri, configuration));
        }
    }

    /** As Hadoop's RawLocalFs, whose constructors are its own. */
    static class RawFs extends DelegateToFileSystem {
        RawFs(URI uri, Configuration configuration) throws IOException, URISyntaxException {
            super(uri, new Raw(), configuration, "file", false);
        }

        @Override
        public int getUriDefaultPort() {
            return -1;
        }

        @Override
        public FsServerDefaults getServerDefaults(Path path) throws IOException {
            return LocalConfigKeys.getServerDefaults();
        }

        @Override
        @Deprecated
        public FsServerDefaults getServerDefaults() throws IOException {
            return LocalConfigKeys.getServerDefaults();
        }

        @Override
        public boolean isValidName(String name) {
            return true;
        }
    }
}
