using Azure.Messaging.ServiceBus;
using Azure.Messaging.ServiceBus.Administration;

namespace Judge;

/// <summary>The clients all checks share. Queues are those of Config.json beside the script; each check has one to itself.</summary>
public sealed class Bench(string connection, string administration, string listenOnly) : IAsyncDisposable
{
    private static readonly ServiceBusClientOptions Options = new()
    {
        RetryOptions = new() { MaxRetries = 0, TryTimeout = TimeSpan.FromSeconds(20) },
    };

    public ServiceBusClient Client { get; } = new(connection, Options);

    public ServiceBusClient ListenOnly { get; } = new(listenOnly, Options);

    public ServiceBusAdministrationClient Administration { get; } = new(administration);

    public static readonly TimeSpan Wait = TimeSpan.FromSeconds(10);

    /// <summary>When nothing is expected to come.</summary>
    public static readonly TimeSpan Moment = TimeSpan.FromMilliseconds(300);

    public static ServiceBusMessage Message(string body, string? id = null)
    {
        var message = new ServiceBusMessage(body);
        if (id != null) message.MessageId = id;
        return message;
    }

    public async Task Send(string entity, params ServiceBusMessage[] messages)
    {
        await using var sender = Client.CreateSender(entity);
        await sender.SendMessagesAsync(messages);
    }

    public static async Task<ServiceBusReceivedMessage> Take(ServiceBusReceiver receiver) =>
        Expect.NotNull(await receiver.ReceiveMessageAsync(Wait), "a message");

    /// <summary>Receives exactly so many.</summary>
    public static async Task<List<ServiceBusReceivedMessage>> Take(ServiceBusReceiver receiver, int count)
    {
        var messages = new List<ServiceBusReceivedMessage>();
        while (messages.Count < count)
        {
            var more = await receiver.ReceiveMessagesAsync(count - messages.Count, Wait);
            Expect.True(more.Count > 0, $"only {messages.Count} of {count} messages came");
            messages.AddRange(more);
        }
        return messages;
    }

    public async ValueTask DisposeAsync()
    {
        await Client.DisposeAsync();
        await ListenOnly.DisposeAsync();
    }
}
