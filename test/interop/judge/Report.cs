namespace Judge;

/// <summary>Runs checks, prints a line for each and counts them. A check that throws has failed; the next one runs.</summary>
public sealed class Report
{
    /// <summary>Longest time a check may take; for what hangs, not for what is slow.</summary>
    private static readonly TimeSpan Patience = TimeSpan.FromSeconds(60);

    private int _passed;
    private int _failed;

    public async Task Check(string what, Func<Task> check)
    {
        try
        {
            await check().WaitAsync(Patience);
            _passed++;
            Console.WriteLine($"ok {what}");
        }
        catch (Exception exception)
        {
            _failed++;
            var text = exception is NotAsExpected ? exception.Message : exception.ToString();
            Console.WriteLine($"FAILED {what}: {text}");
        }
    }

    /// <summary>Prints the last line and gives the exit code.</summary>
    public int Finish()
    {
        Console.WriteLine($"{_passed} passed, {_failed} failed");
        return _failed == 0 && _passed > 0 ? 0 : 1;
    }
}

public sealed class NotAsExpected(string message) : Exception(message);

public static class Expect
{
    public static void Equal<T>(T expected, T seen, string what)
    {
        if (!EqualityComparer<T>.Default.Equals(expected, seen)) throw new NotAsExpected($"{what}: expected {Show(expected)}, seen {Show(seen)}");
    }

    public static void Sequence<T>(IEnumerable<T> expected, IEnumerable<T> seen, string what)
    {
        if (!expected.SequenceEqual(seen)) throw new NotAsExpected($"{what}: expected {Show(expected)}, seen {Show(seen)}");
    }

    public static void True(bool condition, string what)
    {
        if (!condition) throw new NotAsExpected(what);
    }

    public static T NotNull<T>(T? value, string what) where T : class =>
        value ?? throw new NotAsExpected($"{what}: nothing is there");

    /// <summary>Runs what must fail, and gives the exception.</summary>
    public static async Task<TException> Throws<TException>(Func<Task> act, string what) where TException : Exception
    {
        try
        {
            await act();
        }
        catch (TException exception)
        {
            return exception;
        }
        throw new NotAsExpected($"{what}: nothing was thrown");
    }

    private static string Show(object? value) => value switch
    {
        null => "null",
        string text => $"'{text}'",
        System.Collections.IEnumerable items => $"[{string.Join(", ", items.Cast<object?>().Select(Show))}]",
        _ => $"{value} ({value.GetType().Name})",
    };
}
