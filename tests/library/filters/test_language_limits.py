import pytest

from dagster_dataops import data
from tests.each import each

# A paragraph of a manual in each language.
PROSE = {
    "de": "Wenn Sie das Programm zum ersten Mal starten, fragt es nach dem Namen des "
    "Benutzers und nach der Sprache. Danach können Sie im Fenster mit den "
    "Einstellungen wählen, wie die Dateien gespeichert werden. Die Sicherung läuft "
    "jede Nacht und schreibt einen Bericht.",
    "es": "Cuando se inicia el programa por primera vez, pregunta el nombre del usuario y "
    "el idioma. Después se puede elegir en la ventana de opciones cómo se guardan "
    "los archivos. La copia de seguridad se hace cada noche y escribe un informe "
    "para el administrador.",
    "fr": "Quand le programme démarre pour la première fois, il demande le nom de "
    "l'utilisateur et la langue. Ensuite, on peut choisir dans la fenêtre des "
    "options comment les fichiers sont enregistrés. La sauvegarde a lieu chaque nuit "
    "et écrit un rapport pour l'administrateur.",
    "zh": "第一次启动程序时，它会询问用户的名字和语言。然后可以在选项窗口中选择如何保存文件"
    "。备份在每天晚上进行，并且为管理员写一份报告。如果磁盘已满，程序会发出警告，但是"
    "不会删除旧的文件。",
    "ja": "プログラムを初めて起動すると、利用者の名前と言語を尋ねます。その後、設定の画面で"
    "ファイルの保存方法を選ぶことができます。バックアップは毎晩行われ、管理者に報告が"
    "書かれます。ディスクがいっぱいになると警告を出します。",
    "ru": "Когда программа запускается в первый раз, она спрашивает имя пользователя и "
    "язык. После этого в окне настроек можно выбрать, как сохраняются файлы. "
    "Резервная копия делается каждую ночь, и администратор получает отчёт о том, что "
    "было сделано.",
    "ko": "프로그램을 처음 시작하면 사용자의 이름과 언어를 묻습니다. 그 다음 설정 창에서 "
    "파일을 저장하는 방법을 선택할 수 있습니다. 백업은 매일 밤 실행되며 관리자를 "
    "위해 보고서를 작성합니다. 디스크가 가득 차면 경고하지만 오래된 파일은 삭제하지 "
    "않습니다. 이 경우 다른 디스크를 연결하고 프로그램을 다시 시작하는 것이 좋습니다.",
}


@pytest.mark.slow
@each("language", PROSE)
def test_prose_is_kept_with_its_language_and_dropped_as_english(language):
    record = {"text": PROSE[language] + "\n"}

    kept = data.filters.GopherQuality(language=language, min_words=20)([dict(record)])
    assert kept == [record]
    english = data.filters.GopherQuality(min_words=0, mode="tag").forward(dict(record))
    assert english["drop_reason"] in {
        "gopher_enough_stop_words",
        "gopher_above_avg_threshold",
        "gopher_below_avg_threshold",
    }
    preset = data.filters.Pretraining(language=language, mode="tag").forward(dict(record))
    assert preset["drop_reason"] in {None, "gopher_short_doc"}


@pytest.mark.slow
@each("language", PROSE)
def test_lists_and_repetitions_are_dropped_in_all_languages(language):
    keeps = data.filters.Pretraining(language=language)
    parts = [PROSE[language][start : start + 6].strip() for start in range(0, 120, 3)]

    assert keeps([{"text": "\n".join(parts)}]) == []
    assert keeps([{"text": "\n".join([PROSE[language]] * 20)}]) == []
    assert keeps([{"text": "\n".join(f"{n} {n * 7}" for n in range(90))}]) == []


def test_an_option_that_is_given_counts_in_all_languages():
    record = {"text": PROSE["zh"]}
    strict = data.filters.GopherQuality(language="zh", min_words=1, min_mean_word_length=2)

    assert strict.forward(record).reason == "gopher_below_avg_threshold"
    assert data.filters.MeanWordLength(language="zh")([dict(record)]) == [record]
    assert data.filters.WordCount(language="zh", min_words=60)([dict(record)]) == [record]


def test_codes_may_have_a_region_and_unknown_languages_have_no_stop_words():
    record = {"text": PROSE["de"] + "\n"}
    for language in ("de-AT", "DE_de"):
        filtered = data.filters.GopherQuality(language=language, min_words=20)
        assert filtered([dict(record)]) == [record]
    words = " ".join(f"qap{chr(97 + n)}la ghot" for n in range(26)) + "."
    assert data.filters.GopherQuality(language="tlh")([{"text": words}]) != []


@pytest.mark.parametrize("language", ["en", "en-GB"])
def test_english_has_the_published_limits(language):
    published = data.filters.GopherQuality().rules
    found = data.filters.GopherQuality(language=language).rules

    assert [rule[3:] for rule in found] == [rule[3:] for rule in published]
