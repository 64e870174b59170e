// Runs com.google.common.hash.BloomFilter for the benchmark; ../peer_process.c describes the
// requests and answers.
import com.google.common.hash.BloomFilter;
import com.google.common.hash.Funnel;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

public final class Guava {
    // Tells where a key lies in 'keys'.  One object serves all keys of a request, so that no
    // time goes into making objects.
    private static final class Key {
        int at;
    }

    private static byte[] keys = new byte[0];
    private static int keyBytes;
    private static final Funnel<Key> funnel = (key, sink) -> sink.putBytes(keys, key.at, keyBytes);
    private static BloomFilter<Key> filter;

    private static long add(int count) {
        Key key = new Key();
        for (int i = 0; i < count; i++, key.at += keyBytes)
            filter.put(key);
        return count;
    }

    private static long ask(int count) {
        Key key = new Key();
        long found = 0;
        for (int i = 0; i < count; i++, key.at += keyBytes)
            found += filter.mightContain(key) ? 1 : 0;
        return found;
    }

    private static void answer(long value, long nanoseconds) {
        ByteBuffer message = ByteBuffer.allocate(16).order(ByteOrder.LITTLE_ENDIAN);
        message.putLong(value).putLong(nanoseconds);
        System.out.write(message.array(), 0, 16);
        System.out.flush();
    }

    // Returns the size of the filter, which Guava does not tell: it takes the textbook's number
    // of bits, in words of 64 bits.
    private static long bytes(long capacity, double fpr) {
        long bits = (long) (-capacity * Math.log(fpr) / (Math.log(2) * Math.log(2)));
        return (bits + 63) / 64 * 8;
    }

    public static void main(String[] arguments) throws IOException {
        long capacity = Long.parseLong(arguments[0]);
        double fpr = Double.parseDouble(arguments[1]);
        keyBytes = Integer.parseInt(arguments[2]);
        filter = BloomFilter.create(funnel, capacity, fpr);
        answer(bytes(capacity, fpr), 0);
        DataInputStream in = new DataInputStream(System.in);
        byte[] head = new byte[16];
        for (;;) {
            try {
                in.readFully(head);
            } catch (EOFException end) {
                return;
            }
            int count = (int) ByteBuffer.wrap(head).order(ByteOrder.LITTLE_ENDIAN).getLong(8);
            if (count * keyBytes > keys.length)
                keys = new byte[count * keyBytes];
            in.readFully(keys, 0, count * keyBytes);
            long start = System.nanoTime(), value = 0;
            if (head[0] == 'C')
                filter = BloomFilter.create(funnel, capacity, fpr);
            else
                value = head[0] == 'A' ? add(count) : ask(count);
            answer(value, System.nanoTime() - start);
        }
    }
}
