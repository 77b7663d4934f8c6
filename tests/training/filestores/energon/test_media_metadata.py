import io
import struct
import wave

import pytest

from dagster_dataops import (
    AVMetadata,
    DecodeFileStore,
    ImageMetadata,
    SampleDecoder,
    cooker,
    crude,
    file_store,
    prepare_energon,
)
from dagster_dataops.errors import AuxFileMissingError, InputError
from tests.command_line import main
from tests.training.declared import png
from tests.training.filestores.shards import write_tar


def sound(seconds=2, rate=8000):
    file = io.BytesIO()
    with wave.open(file, "wb") as made:
        made.setnchannels(1)
        made.setsampwidth(2)
        made.setframerate(rate)
        made.writeframes(struct.pack("<h", 0) * seconds * rate)
    return file.getvalue()


@pytest.fixture
def folder(tmp_path):
    write_tar(
        tmp_path / "a" / "s-0.tar",
        [("0.png", png(0)), ("0.txt", b"x"), ("1.png", png(0, "L")), ("2.png", b"no image")],
    )
    return tmp_path / "a"


IMAGE = ImageMetadata(width=6, height=4, format="PNG", mode="RGB")


def test_the_metadata_of_images_is_written_when_shards_are_prepared(folder, caplog):
    assert prepare_energon(folder, media_metadata=True) == {"s-0.tar": 3}
    (message,) = caplog.messages
    assert message.startswith("no media metadata of 2.png, which cannot be decoded: ")
    store = file_store(folder)

    assert store.get_media_metadata("0.png") == IMAGE
    assert store.get_media_metadata("1.png").mode == "L"
    decoded = DecodeFileStore(store, decoder=SampleDecoder())
    assert decoded.get_media_metadata("0.png") == IMAGE
    for name in ("0.txt", "2.png"):
        with pytest.raises(KeyError, match="no media metadata of"):
            store.get_media_metadata(name)
    with pytest.raises(AuxFileMissingError):
        store.get_media_metadata("9.png")


def test_a_cooker_asks_for_the_metadata_of_its_own_parts(folder):
    prepare_energon(folder, media_metadata=True)

    @cooker(need_primary=True)
    def cook(sample, primary):
        return {"width": primary.get_media_metadata(".png").width}

    assert next(iter(crude(folder).cook(cook))) == {"width": 6}


def test_a_folder_of_files_has_metadata_alone(tmp_path):
    media = tmp_path / "media"
    (media / "sub").mkdir(parents=True)
    (media / "sub" / "a.png").write_bytes(png(0))
    (media / "b.txt").write_text("x")

    assert prepare_energon(media, media_metadata=True) == {}
    store = file_store(f"filesystem://{media}")
    assert store.get_media_metadata("sub/a.png") == IMAGE
    with pytest.raises(InputError, match="already"):
        prepare_energon(media, media_metadata=True)
    with pytest.raises(InputError, match="no tar files"):
        prepare_energon(media, overwrite=True)


def test_a_store_without_metadata_says_so(folder):
    prepare_energon(folder)
    with pytest.raises(KeyError, match="media_metadata=True"):
        file_store(folder).get_media_metadata("0.png")


def test_the_metadata_of_sounds_is_their_duration(tmp_path):
    pytest.importorskip("av")
    media = tmp_path / "media"
    media.mkdir()
    (media / "a.wav").write_bytes(sound())
    (media / "broken.mp4").write_bytes(b"x")
    prepare_energon(media, media_metadata=True)

    store = file_store(f"filesystem://{media}")
    assert store.get_media_metadata("a.wav") == AVMetadata(
        audio_duration=2.0, audio_channels=1, audio_sample_rate=8000, audio_num_samples=16000
    )
    with pytest.raises(KeyError):
        store.get_media_metadata("broken.mp4")


def test_the_command_writes_metadata_too(folder, capsys):
    main(["prepare", str(folder), "--media-metadata"])
    assert file_store(folder).get_media_metadata("0.png") == IMAGE
    assert "3 samples" in capsys.readouterr().out
