import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Runs the main methods of Kafka's tools one after another, each as if this JVM were its own.
 *
 * Reads a class and its arguments, writes exit code, standard output, standard error and whether another may follow: a
 * tool that leaves threads behind takes this JVM with it. Who calls Exit goes no further, as in a JVM that ends.
 */
public final class ToolRunner {
    private static final class Current extends OutputStream {
        private volatile ByteArrayOutputStream to = new ByteArrayOutputStream();

        @Override
        public void write(int b) {
            to.write(b);
        }

        @Override
        public void write(byte[] bytes, int offset, int length) {
            to.write(bytes, offset, length);
        }
    }

    private static volatile CompletableFuture<Integer> code;

    public static void main(String[] none) throws Exception {
        DataInputStream asked = new DataInputStream(System.in);
        DataOutputStream told = new DataOutputStream(System.out);
        // Scala's Console keeps the streams it found first.
        Current output = new Current();
        Current errors = new Current();
        System.setOut(new PrintStream(output, true));
        System.setErr(new PrintStream(errors, true));
        Exit.setExitProcedure((status, message) -> exit(status));
        Exit.setHaltProcedure((status, message) -> exit(status));
        Set<Thread> own = running();
        while (true) {
            String[] command;
            try {
                command = new String[asked.readInt()];
            } catch (EOFException ended) {
                Runtime.getRuntime().halt(0);
                throw ended;
            }
            for (int i = 0; i < command.length; i++) {
                command[i] = asked.readUTF();
            }
            output.to = new ByteArrayOutputStream();
            errors.to = new ByteArrayOutputStream();
            code = new CompletableFuture<>();
            Thread tool = new Thread(() -> run(command), "main");
            tool.setDaemon(true);
            tool.start();
            told.writeInt(code.get());
            for (Current each : new Current[] {output, errors}) {
                byte[] said = each.to.toByteArray();
                told.writeInt(said.length);
                told.write(said);
            }
            Set<Thread> left = running();
            left.removeAll(own);
            told.writeBoolean(left.stream().noneMatch(thread -> thread.getName().startsWith("kafka-")));
            told.flush();
        }
    }

    private static void run(String[] command) {
        try {
            String[] arguments = Arrays.copyOfRange(command, 1, command.length);
            Class.forName(command[0]).getMethod("main", String[].class).invoke(null, (Object) arguments);
            code.complete(0);
        } catch (InvocationTargetException error) {
            System.err.print("Exception in thread \"main\" ");
            error.getCause().printStackTrace();
            code.complete(1);
        } catch (ReflectiveOperationException error) {
            error.printStackTrace();
            code.complete(1);
        }
    }

    private static void exit(int status) {
        code.complete(status);
        while (true) {
            LockSupport.park();
        }
    }

    private static Set<Thread> running() {
        return new HashSet<>(Thread.getAllStackTraces().keySet());
    }
}
