"""The training loop of an image classifier, for digits.py and conv.py.

A model is a function from images f32[n, 64] to logits f32[n, 10], and the variables that it reads. A step (forward,
gradient, update of the variables) is one traced function, so it runs as one graph.
"""
import curve
import images
import keel


def run(name, text, model, weights, optimizer, goal, epochs):
    """Trains, draws the loss, saves OUT/NAME.keel with the entry `serve`; returns the exit code of the program."""
    args = curve.arguments(text, epochs=epochs, goal=goal, data=images.FILE)
    clock, (train, test) = curve.Clock(), images.read(args.data)
    serve = keel.function(model, name=name, signature="images: f32[n, 64]")

    @keel.function(signature="images: f32[n, 64], digits: i32[n]")
    def step(images, digits):
        with keel.Tape() as tape:
            loss = keel.reduce_mean(keel.cross_entropy(model(images), digits))
        optimizer.apply(tape.gradient(loss, weights), weights)
        return loss

    losses = []
    batches = keel.data.from_slices(train, batch=64, shuffle=1, epochs=args.epochs)
    for x, y in (bar := keel.progress(batches, label=name)):
        losses.append(step(x, y))
        bar.note(loss=losses[-1])
    right = (serve(test[0]).numpy().argmax(1) == test[1]).mean()
    curve.draw(args.out / f"{name}.png", f"{name}: {right:.1%} of the test right",
               {"training": (range(len(losses)), [loss.item() for loss in losses])})
    keel.save(args.out / f"{name}.keel", serve=serve.concrete(keel.zeros((1, 64))))
    print(f"{name}: {len(losses)} steps in {clock}, loss {losses[-1].item():.4f}")
    return curve.judge(name, "right in the test", right, args.goal)
