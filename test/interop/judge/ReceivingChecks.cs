using System.Collections.Concurrent;
using Azure.Messaging.ServiceBus;

namespace Judge;

public static class ReceivingChecks
{
    public static async Task Run(Report report, Bench bench)
    {
        await report.Check("a processor with prefetch gets 500 messages, each once", () => Processor(bench));
        await report.Check("a processor gets what comes while it runs, and stops", () => ProcessorLater(bench));
        await report.Check("a handler that throws gives its message back", () => ProcessorThatFails(bench));
        await report.Check("a processor renews a lock for as long as its handler takes", () => ProcessorThatRenews(bench));
        await report.Check("a receiver with prefetch settles what it prefetched", () => Prefetch(bench));
        await report.Check("receive-and-delete takes messages away", () => ReceiveAndDelete(bench));
        await report.Check("two receivers share a queue", () => TwoReceivers(bench));
        await report.Check("waiting for nothing ends in time and loses nothing", () => EmptyThenFull(bench));
    }

    private static async Task Processor(Bench bench)
    {
        await bench.Send("receiving", [.. Enumerable.Range(0, 500).Select(i => Bench.Message($"{i}"))]);
        var seen = new ConcurrentBag<string>();
        var errors = new ConcurrentBag<Exception>();
        var all = new TaskCompletionSource();
        await using var processor = bench.Client.CreateProcessor("receiving", new ServiceBusProcessorOptions
        {
            PrefetchCount = 50,
            MaxConcurrentCalls = 8,
        });
        processor.ProcessMessageAsync += args =>
        {
            seen.Add(args.Message.Body.ToString());
            if (seen.Count == 500) all.TrySetResult();
            return Task.CompletedTask;
        };
        processor.ProcessErrorAsync += args =>
        {
            errors.Add(args.Exception);
            return Task.CompletedTask;
        };
        await processor.StartProcessingAsync();
        await all.Task;
        await processor.StopProcessingAsync();
        Expect.Equal(0, errors.Count, $"errors, the first of them {errors.FirstOrDefault()?.Message}");
        Expect.Equal(500, seen.Distinct().Count(), "different messages");
        Expect.Equal(500, seen.Count, "messages");
        await NothingLeft(bench, "receiving");
    }

    private static async Task ProcessorLater(Bench bench)
    {
        var seen = new BlockingCollection<string>();
        await using var processor = bench.Client.CreateProcessor("receiving");
        processor.ProcessMessageAsync += args =>
        {
            seen.Add(args.Message.Body.ToString());
            return Task.CompletedTask;
        };
        processor.ProcessErrorAsync += _ => Task.CompletedTask;
        await processor.StartProcessingAsync();
        for (var i = 0; i < 3; i++)
        {
            await bench.Send("receiving", Bench.Message($"{i}"));
            Expect.True(seen.TryTake(out var body, Bench.Wait) && body == $"{i}", $"message {i}");
        }
        await processor.StopProcessingAsync();
        await NothingLeft(bench, "receiving");
    }

    private static async Task ProcessorThatFails(Bench bench)
    {
        await bench.Send("receiving", Bench.Message("hard"));
        var done = new TaskCompletionSource<int>();
        var errors = 0;
        await using var processor = bench.Client.CreateProcessor("receiving");
        processor.ProcessMessageAsync += args =>
        {
            if (args.Message.DeliveryCount < 3) throw new InvalidOperationException("not yet");
            done.TrySetResult(args.Message.DeliveryCount);
            return Task.CompletedTask;
        };
        processor.ProcessErrorAsync += _ =>
        {
            Interlocked.Increment(ref errors);
            return Task.CompletedTask;
        };
        await processor.StartProcessingAsync();
        Expect.Equal(3, await done.Task, "delivery count");
        await processor.StopProcessingAsync();
        Expect.Equal(2, errors, "errors");
        await NothingLeft(bench, "receiving");
    }

    private static async Task ProcessorThatRenews(Bench bench)
    {
        await bench.Send("briefly", Bench.Message("slow"));
        var done = new TaskCompletionSource();
        var deliveries = 0;
        await using var processor = bench.Client.CreateProcessor("briefly", new ServiceBusProcessorOptions
        {
            MaxAutoLockRenewalDuration = TimeSpan.FromSeconds(20),
        });
        processor.ProcessMessageAsync += async args =>
        {
            Interlocked.Increment(ref deliveries);
            // More than twice as long as the lock holds.
            await Task.Delay(TimeSpan.FromSeconds(7));
            await args.CompleteMessageAsync(args.Message);
            done.TrySetResult();
        };
        processor.ProcessErrorAsync += args =>
        {
            done.TrySetException(args.Exception);
            return Task.CompletedTask;
        };
        await processor.StartProcessingAsync();
        await done.Task;
        await processor.StopProcessingAsync();
        Expect.Equal(1, deliveries, "deliveries");
        await NothingLeft(bench, "briefly");
    }

    private static async Task Prefetch(Bench bench)
    {
        await bench.Send("receiving", [.. Enumerable.Range(0, 30).Select(i => Bench.Message($"{i}"))]);
        await using (var receiver = bench.Client.CreateReceiver("receiving", new ServiceBusReceiverOptions { PrefetchCount = 100 }))
        {
            for (var i = 0; i < 30; i++)
            {
                var message = await Bench.Take(receiver);
                Expect.Equal($"{i}", message.Body.ToString(), "order");
                await receiver.CompleteMessageAsync(message);
            }
        }
        await NothingLeft(bench, "receiving");
    }

    private static async Task ReceiveAndDelete(Bench bench)
    {
        await bench.Send("receiving", Bench.Message("a"), Bench.Message("b"));
        await using var receiver = bench.Client.CreateReceiver("receiving", new ServiceBusReceiverOptions { ReceiveMode = ServiceBusReceiveMode.ReceiveAndDelete });
        var messages = await Bench.Take(receiver, 2);
        Expect.Sequence(["a", "b"], messages.Select(message => message.Body.ToString()), "bodies");
        await NothingLeft(bench, "receiving");
    }

    private static async Task TwoReceivers(Bench bench)
    {
        await bench.Send("receiving", [.. Enumerable.Range(0, 40).Select(i => Bench.Message($"{i}"))]);
        await using var first = bench.Client.CreateReceiver("receiving");
        await using var second = bench.Client.CreateReceiver("receiving");
        var halves = await Task.WhenAll(Bench.Take(first, 20), Bench.Take(second, 20));
        Expect.Equal(40, halves.SelectMany(half => half).Select(message => message.SequenceNumber).Distinct().Count(), "numbers");
        await Task.WhenAll(halves[0].Select(message => first.CompleteMessageAsync(message)));
        await Task.WhenAll(halves[1].Select(message => second.CompleteMessageAsync(message)));
        await NothingLeft(bench, "receiving");
    }

    private static async Task EmptyThenFull(Bench bench)
    {
        await using var receiver = bench.Client.CreateReceiver("receiving");
        for (var i = 0; i < 5; i++) Expect.Equal(null, await receiver.ReceiveMessageAsync(TimeSpan.FromMilliseconds(50)), "nothing");
        await bench.Send("receiving", Bench.Message("late"));
        var message = await Bench.Take(receiver);
        Expect.Equal(1, message.DeliveryCount, "delivery count");
        await receiver.CompleteMessageAsync(message);
        await NothingLeft(bench, "receiving");
    }

    private static async Task NothingLeft(Bench bench, string queue)
    {
        await using var receiver = bench.Client.CreateReceiver(queue);
        Expect.Equal(null, await receiver.PeekMessageAsync(0), "what is left");
    }
}
