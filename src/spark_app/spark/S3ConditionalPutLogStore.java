package sparkapp;

import io.delta.storage.S3SingleDriverLogStore;
import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.Arrays;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options.CreateFileOptionKeys;
import org.apache.hadoop.fs.Path;

/**
 * Delta's log on S3, where a commit is one conditional put (If-None-Match: *), so that each version has one writer.
 *
 * <p>Delta's own store asks whether a version is there and then puts it: of two drivers that do so at once, the second
 * replaces the commit of the first. See docs/decisions/0029-an-object-store-as-the-warehouse.md.
 */
public class S3ConditionalPutLogStore extends S3SingleDriverLogStore {
    public S3ConditionalPutLogStore(Configuration configuration) {
        super(configuration);
    }

    @Override
    public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration configuration)
            throws IOException {
        if (overwrite) {
            super.write(path, actions, true, configuration);
            return;
        }
        byte[] content = contentOf(actions);
        FileSystem system = path.getFileSystem(configuration);
        try {
            putIfAbsent(system, path, content);
        } catch (IOException error) {
            requireOwn(system, path, content, error);
        }
    }

    private static byte[] contentOf(Iterator<String> actions) throws IOException {
        ByteArrayOutputStream content = new ByteArrayOutputStream();
        while (actions.hasNext()) {
            content.write(actions.next().getBytes(StandardCharsets.UTF_8));
            content.write('\n');
        }
        return content.toByteArray();
    }

    private static void putIfAbsent(FileSystem system, Path path, byte[] content) throws IOException {
        FSDataOutputStreamBuilder<?, ?> builder = system.createFile(path).overwrite(false);
        builder.must(CreateFileOptionKeys.FS_OPTION_CREATE_CONDITIONAL_OVERWRITE, true);
        FSDataOutputStream stream = (FSDataOutputStream) builder.build();
        try {
            stream.write(content);
        } catch (IOException error) {
            stream.abort();
            throw error;
        }
        stream.close();
    }

    /**
     * Returns if the object that is there was put by this write, and throws what happened if it was not.
     *
     * <p>A put whose answer is lost is sent again, and refused then since the object is there. No two commits have the
     * same content: each has the id of its transaction.
     */
    private static void requireOwn(FileSystem system, Path path, byte[] content, IOException error)
            throws IOException {
        byte[] found;
        try (FSDataInputStream stream = system.open(path)) {
            found = stream.readNBytes(content.length + 1);
        } catch (FileNotFoundException absent) {
            throw error;
        } catch (IOException unread) {
            error.addSuppressed(unread);
            throw error;
        }
        if (!Arrays.equals(found, content)) {
            FileAlreadyExistsException other = new FileAlreadyExistsException(path.toString());
            other.initCause(error);
            throw other;
        }
    }
}
