namespace Judge;

/// <summary>
/// A value of every type the .NET client can put into a property, and the cast a consumer does. A cast of a boxed value
/// is exact: an int that came back as a uint or a long fails.
/// </summary>
public static class EveryType
{
    public static readonly IReadOnlyDictionary<string, object> Values = new Dictionary<string, object>
    {
        ["int"] = 42,
        ["intZero"] = 0,
        ["intNegative"] = int.MinValue,
        ["long"] = 9_007_199_254_740_993L,
        ["longSmall"] = 7L,
        ["longNegative"] = long.MinValue,
        ["short"] = (short)-12_345,
        ["byte"] = (byte)200,
        ["sbyte"] = (sbyte)-100,
        ["uint"] = uint.MaxValue,
        ["uintSmall"] = 3u,
        ["ulong"] = ulong.MaxValue,
        ["ulongSmall"] = 4UL,
        ["ushort"] = ushort.MaxValue,
        ["float"] = 1.5f,
        ["double"] = 2.0d,
        ["doubleTiny"] = double.Epsilon,
        ["decimal"] = 79_228_162_514_264.337593543950335m,
        ["decimalNegative"] = -0.01m,
        ["true"] = true,
        ["false"] = false,
        ["char"] = 'é',
        ["string"] = "text with ' and € and \U0001F600",
        ["stringEmpty"] = "",
        ["stringLong"] = new string('x', 1000),
        ["guid"] = Guid.Parse("00112233-4455-6677-8899-aabbccddeeff"),
        ["dateTime"] = new DateTime(2026, 1, 2, 3, 4, 5, 678, DateTimeKind.Utc),
        ["dateTimeOffset"] = new DateTimeOffset(2026, 1, 2, 3, 4, 5, TimeSpan.Zero).AddTicks(1_234_567),
        ["timeSpan"] = TimeSpan.FromTicks(123_456_789_012),
        ["uri"] = new Uri("https://example.com/a?b=c#d"),
        ["bytes"] = new byte[] { 0, 1, 254, 255 },
    };

    /// <summary>Casts one property to the type it was sent as and compares it. Throws when either does not hold.</summary>
    public static void Cast(string name, object? value)
    {
        var sent = Values[name];
        Expect.True(value != null, $"'{name}' is missing");
        switch (sent)
        {
            case int expected: Expect.Equal(expected, (int)value!, name); break;
            case long expected: Expect.Equal(expected, (long)value!, name); break;
            case short expected: Expect.Equal(expected, (short)value!, name); break;
            case byte expected: Expect.Equal(expected, (byte)value!, name); break;
            case sbyte expected: Expect.Equal(expected, (sbyte)value!, name); break;
            case uint expected: Expect.Equal(expected, (uint)value!, name); break;
            case ulong expected: Expect.Equal(expected, (ulong)value!, name); break;
            case ushort expected: Expect.Equal(expected, (ushort)value!, name); break;
            case float expected: Expect.Equal(expected, (float)value!, name); break;
            case double expected: Expect.Equal(expected, (double)value!, name); break;
            case decimal expected: Expect.Equal(expected, (decimal)value!, name); break;
            case bool expected: Expect.Equal(expected, (bool)value!, name); break;
            case char expected: Expect.Equal(expected, (char)value!, name); break;
            case string expected: Expect.Equal(expected, (string)value!, name); break;
            case Guid expected: Expect.Equal(expected, (Guid)value!, name); break;
            case DateTime expected: Expect.Equal(expected, (DateTime)value!, name); break;
            case DateTimeOffset expected: Expect.Equal(expected, (DateTimeOffset)value!, name); break;
            case TimeSpan expected: Expect.Equal(expected, (TimeSpan)value!, name); break;
            case Uri expected: Expect.Equal(expected, (Uri)value!, name); break;
            case byte[] expected: Expect.Sequence(expected, (byte[])value!, name); break;
            default: throw new NotAsExpected($"'{name}': there is no cast for {sent.GetType()}");
        }
    }

    /// <summary>What can be given along with a settlement: the client itself refuses byte arrays there (7.21.0).</summary>
    public static IEnumerable<string> NamesForSettlement => Values.Keys.Where(name => Values[name] is not byte[]);

    public static void AddTo(IDictionary<string, object> properties, IEnumerable<string>? names = null)
    {
        foreach (var name in names ?? Values.Keys) properties[name] = Values[name];
    }
}
