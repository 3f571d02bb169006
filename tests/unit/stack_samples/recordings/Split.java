public class Split {
    static long sink;
    static void heavy() { spin(700); }
    static void light() { spin(300); }
    static void spin(int n) { for (int i = 0; i < n * 2000; i++) sink = sink * 31 + i % 7; }
    public static void main(String[] a) {
        long until = System.currentTimeMillis() + Long.parseLong(a[0]);
        while (System.currentTimeMillis() < until) { heavy(); light(); }
    }
}
