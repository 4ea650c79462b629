using System.Collections;
using System.Globalization;
using System.Text.Json;
using Azure.Core.Amqp;
using Azure.Messaging.ServiceBus;

namespace Judge;

/// <summary>
/// Messages of every AMQP type and shape, as this client decodes them before their death and after their replay: each value with
/// its .NET type, so that a copy whose int became a long differs.
/// </summary>
public static class Matrix
{
    /// <summary>What a replay adds, and what dying has added.</summary>
    private static readonly string[] Reset =
        ["x-replay-count", "x-replayed-at", "x-replay-id", "x-replay-of", "DeadLetterReason", "DeadLetterErrorDescription"];

    /// <summary>What a broker writes on every message it delivers.</summary>
    private static readonly string[] Brokers =
        ["x-opt-sequence-number", "x-opt-enqueue-sequence-number", "x-opt-enqueued-time", "x-opt-locked-until", "x-opt-message-state"];

    public static async Task Record(Report report, string connection, string queue, int count, string file)
    {
        await using var client = new ServiceBusClient(connection);
        await using var receiver = client.CreateReceiver(queue);
        var originals = new Dictionary<string, SortedDictionary<string, string>>();
        await report.Check($"{count} messages of every type and shape are decoded and dead-lettered", async () =>
        {
            foreach (var message in await Bench.Take(receiver, count))
            {
                originals[message.MessageId] = Decode(message);
                await receiver.DeadLetterMessageAsync(message, "Unprocessable", "no such customer");
            }
            Expect.Equal(count, originals.Count, "messages");
        });
        await File.WriteAllTextAsync(file, JsonSerializer.Serialize(originals));
    }

    public static async Task Compare(Report report, string connection, string queue, int count, string file)
    {
        var originals = JsonSerializer.Deserialize<Dictionary<string, SortedDictionary<string, string>>>(await File.ReadAllTextAsync(file))!;
        await using var client = new ServiceBusClient(connection);
        await using var receiver = client.CreateReceiver(queue);
        var copies = new List<ServiceBusReceivedMessage>();
        await report.Check($"{count} copies arrive", async () => copies = await Bench.Take(receiver, count));
        foreach (var copy in copies)
        {
            await report.Check($"{copy.MessageId}: the copy is decoded as the original was", () =>
            {
                var original = originals[copy.MessageId];
                var decoded = Decode(copy);
                Expect.Sequence(original.Keys, decoded.Keys, "what is there");
                foreach (var (part, value) in original) Expect.Equal(value, decoded[part], part);
                Expect.Equal(1, (int)copy.ApplicationProperties["x-replay-count"], "x-replay-count");
                return receiver.CompleteMessageAsync(copy);
            });
        }
    }

    /// <summary>Every part of a message but what a replay is documented to reset, as text with its type.</summary>
    private static SortedDictionary<string, string> Decode(ServiceBusReceivedMessage message)
    {
        var raw = message.GetRawAmqpMessage();
        var parts = new SortedDictionary<string, string>(StringComparer.Ordinal)
        {
            ["header.durable"] = Text(raw.Header.Durable),
            ["header.priority"] = Text(raw.Header.Priority),
            ["header.time-to-live"] = Text(raw.Header.TimeToLive),
            ["properties.message-id"] = Text(raw.Properties.MessageId?.ToString()),
            ["properties.user-id"] = Text(raw.Properties.UserId?.ToArray()),
            ["properties.to"] = Text(raw.Properties.To?.ToString()),
            ["properties.subject"] = Text(raw.Properties.Subject),
            ["properties.reply-to"] = Text(raw.Properties.ReplyTo?.ToString()),
            ["properties.correlation-id"] = Text(raw.Properties.CorrelationId?.ToString()),
            ["properties.content-type"] = Text(raw.Properties.ContentType),
            ["properties.content-encoding"] = Text(raw.Properties.ContentEncoding),
            ["properties.group-id"] = Text(raw.Properties.GroupId),
            ["properties.group-sequence"] = Text(raw.Properties.GroupSequence),
            ["properties.reply-to-group-id"] = Text(raw.Properties.ReplyToGroupId),
            ["delivery count"] = Text(message.DeliveryCount),
            ["body"] = Body(raw.Body),
        };
        foreach (var (name, value) in raw.ApplicationProperties)
            if (!Reset.Contains(name)) parts[$"application property {name}"] = Text(value);
        foreach (var (name, value) in raw.MessageAnnotations)
            if (!Brokers.Contains(name)) parts[$"annotation {name}"] = Text(value);
        foreach (var (name, value) in raw.Footer) parts[$"footer {name}"] = Text(value);
        return parts;
    }

    private static string Body(AmqpMessageBody body)
    {
        if (body.TryGetData(out var sections)) return "data " + string.Join(" | ", sections!.Select(section => Text(section.ToArray())));
        if (body.TryGetSequence(out var sequences)) return "sequence " + string.Join(" | ", sequences!.Select(Text));
        return body.TryGetValue(out var value) ? "value " + Text(value) : "another kind";
    }

    private static string Text(object? value) => value switch
    {
        null => "null",
        byte[] bytes => $"bytes {Convert.ToHexString(bytes)}",
        ArraySegment<byte> bytes => $"bytes {Convert.ToHexString(bytes)}",
        ReadOnlyMemory<byte> bytes => $"bytes {Convert.ToHexString(bytes.Span)}",
        string text => $"string {text}",
        double number => $"double {BitConverter.DoubleToInt64Bits(number):x}",
        float number => $"float {BitConverter.SingleToInt32Bits(number):x}",
        DateTime time => $"DateTime {time.ToUniversalTime():O}",
        IDictionary map => "map " + string.Join(", ", map.Keys.Cast<object>().Select(key => $"{Text(key)} = {Text(map[key])}")),
        IEnumerable items => "list " + string.Join(", ", items.Cast<object?>().Select(Text)),
        IFormattable other => $"{other.GetType().Name} {other.ToString(null, CultureInfo.InvariantCulture)}",
        _ => $"{value.GetType().Name} {value}",
    };
}
