// Writes what java.util.regex makes of many patterns and texts, one JSON object a line (Java 19 or newer):
//   java -cp '.servers/kafka/libs/*' tests/tidegate/kit/RecordRegex.java | gzip -9n > tests/tidegate/kit/java_regex.jsonl.gz

import com.fasterxml.jackson.databind.*;
import com.fasterxml.jackson.databind.node.*;
import java.util.*;
import java.util.regex.*;

public class RecordRegex {
    static final ObjectMapper mapper = new ObjectMapper();
    static final Random random = new Random(7);
    static final String[] PIECES = {"a", "b", "1", "_", ".", "\\.", "-", "public", "\\w", "\\W", "\\d", "\\D", "\\s", "\\S", "[abc]", "[^abc]", "[a-z&&[^b]]", "[a-c[x-z]]", "[\\w.]",
        "[\\D]", "[^\\d]", "[\\p{Alpha}_]", "\\p{Alpha}", "\\p{Alnum}", "\\p{Lower}", "\\p{Upper}", "\\p{Punct}", "\\p{Digit}", "\\p{L}", "\\p{Lu}", "\\P{L}", "\\p{IsAlphabetic}", "\\pL",
        "\\P{Alpha}", "\\p{Space}", "\\p{Blank}", "\\p{XDigit}", "\\p{ASCII}", "\\h", "\\Q.*\\E", "\\Qa", "\\x41", "\\x{e4}", "\\u00e4", "\\t", "\\b", "\\B", "^", "$", "\\A", "\\z", "\\Z",
        "(?i)", "(?-i)", "(?i:a)", "(?s)", "(a)", "(b|1)", "(?:ab|c)", "(?<name>a|b)", "\\k<name>", "\\1", "(?=a)", "(?!a)", "(?<=a)", "(?<!b)", "(?>a|ab)", "|", "*", "+", "?", "*?", "++", "{2}",
        "{1,2}", "(", ")", "[", "]", "{", "ä", "\\-", "\\/", "#", " ", "\\e", "\\0101"};
    static final String[] TEXTS = {"", "a", "b", "A", "ab", "abc", "aab", "public.a", "public.orders_1", "1", "a1", "_", ".", ".*", "ä", "Ä", "aä", "a b", " ", "\t", "a-b", "-", "x", "z", "a\n", "aa", "bb", "e4",
        "!", "A1_", "b1", "a.b", "Qa", "\u00a0", "١", "\u001b"};

    public static void main(String[] arguments) throws Exception {
        for (String fixed : new String[] {"public\\.(?<table>orders|items)", "(?<a>.)(?<b>.)\\k<b>\\k<a>", "^(?!public\\.audit).*", ".*\\.(?:orders|lines)_\\d+", "[a-z]+(?i)B", "(?x) a b # c", "\\Qa.b\\E.*",
            "(\\w+)\\.(\\w+)", "([^.]*)\\.(.*)", "a{,2}", "[]a]", "[a", "(?<1>a)", "(?<n>a)(?<n>b)", "\\p{Nope}", "*a", "a**", "(?P<n>a)", "(?z)a", "\\", "[\\]a]+", "[a\\-z]+", "[.$]", "[a-\\d]", "\\N{DIGIT ONE}", "\\R", "\\X",
            "\\G", "\\cA", "(?<name>a)${name}", "a|", "()", "[^]", "[&&a]", "[a&&]", "\\p{javaLowerCase}+", "\\p{InGreek}", "\\p{IsLatin}+", "\\p{script=Latin}+"}) record(fixed);
        for (int n = 0; n < 2500; n++) {
            StringBuilder pattern = new StringBuilder();
            for (int size = 1 + random.nextInt(5); size > 0; size--) pattern.append(PIECES[random.nextInt(PIECES.length)]);
            record(pattern.toString());
        }
    }

    static void record(String text) throws Exception {
        boolean ignoreCase = random.nextInt(3) == 0;
        ObjectNode line = mapper.createObjectNode().put("pattern", text).put("ignore_case", ignoreCase);
        Pattern pattern;
        try {
            pattern = Pattern.compile(text, ignoreCase ? Pattern.CASE_INSENSITIVE : 0);
        } catch (PatternSyntaxException error) {
            System.out.println(line.put("error", error.getDescription()));
            return;
        }
        ArrayNode full = line.putArray("full"), found = line.putArray("found"), replaced = line.putArray("replaced");
        for (String given : TEXTS) {
            Matcher matcher = pattern.matcher(given);
            full.add(matcher.matches());
            matcher.reset();
            found.add(matcher.find() ? matcher.group() : null);
            replaced.add(pattern.matcher(given).replaceAll(matcher.groupCount() > 0 ? "<$0|$1>" : "<$0>"));
        }
        System.out.println(line);
    }
}
