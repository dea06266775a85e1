from regard.models.build import transformer
from regard.nn.embeddings import TokenEmbedding
from regard.nn.ops import Linear
from tests.models.small_models import section


def test_how_they_are_drawn() -> None:
    model = transformer(section(d_model=64, d_ff=256, heads=4, positions="learned"), 500, 500, 3)
    for module in model.modules():
        if isinstance(module, Linear):
            bound = (6 / sum(module.weight.shape)) ** 0.5
            assert module.weight.abs().max() <= bound
            assert abs(module.weight.std() - bound / 3**0.5) < 0.05 * bound
            assert (module.bias == 0).all()
        elif isinstance(module, TokenEmbedding):
            assert (module.weight[module.pieces] == 0).all()
            assert abs(module.weight[: module.pieces].std() - 1 / 8) < 0.01
    assert abs(model.encoder.input.positions.weight.std() - 1 / 8) < 0.01
