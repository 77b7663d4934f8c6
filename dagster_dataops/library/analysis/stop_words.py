"""Stop words of 20 languages: articles, pronouns, prepositions, conjunctions, auxiliaries."""

from types import MappingProxyType
from typing import Final

from dagster_dataops.errors import DefinitionError

_STOP_WORDS: Final = MappingProxyType(
    {
        "ar": "من في على إلى عن مع هذا هذه ذلك تلك التي الذي الذين ما لا لم لن إن أن كان كانت "
        "يكون قد كل بعد قبل بين حتى عند ثم أو و هو هي هم نحن أنا أنت كما لكن غير أي إذا "
        "منذ حيث فيه فيها منه منها عليه عليها به بها له لها هناك أيضا ليس بل",
        "cs": "a aby ale ani asi bez bude budou by byl byla bylo byli být co což do ho i já jak "
        "jako je jeho jej jejich její jen jsem jsme jsou k kde kdy když který která které "
        "ke mezi mi má může na nad ne nebo než není o od on ona oni pak po pod podle pro "
        "proto protože při s se si so ta tak také tam ten tento tím to tomu tu ty u už v "
        "ve však vše z za ze že",
        "da": "af alle alt at blev blive bliver da de dem den denne der deres det dette dig din "
        "disse dog du efter eller en end er et for fra ham han hans har havde have hende "
        "her hos hun hvad hvis hvor i ikke ind jeg jer kan kunne man mange med meget men "
        "mig min når nu og også om op os over på sig sin skal skulle som så til ud under "
        "var ved vi vil ville være været",
        "de": "aber alle als also am an auch auf aus bei bin bis da damit dann das dass dem den "
        "der des die dies diese dieser doch du durch ein eine einem einen einer eines er "
        "es für hat hatte ich ihm ihn ihr ihre im in ist ja kann kein keine können man "
        "mehr mein mit nach nicht noch nun nur ob oder ohne sehr sein seine sich sie sind "
        "so über um und uns unter vom von vor war was wenn werden wie wieder wir wird wo "
        "wurde zu zum zur zwischen",
        "el": "ο η το οι τα του της των τον την τους τις και κι να θα με σε για από στο στη "
        "στην στον στα στις στους που πως πού δεν δε μη μην είναι ήταν έχει έχουν είχε αν "
        "ή αλλά όμως ως όπως ότι όταν αυτό αυτή αυτός αυτά μου σου μας σας ένα ένας μια "
        "μία κάθε πολύ πιο προς κατά μετά πριν χωρίς μόνο ακόμα εδώ εκεί",
        "en": "a about after again against all am an and any are as at be because been before "
        "being below between both but by can cannot could did do does doing down during "
        "each few for from further had has have having he her here hers him his how i if "
        "in into is it its just me more most my no nor not now of off on once only or "
        "other our out over own same she should so some such than that the their them "
        "then there these they this those through to too under until up very was we were "
        "what when where which while who whom why will with would you your",
        "es": "a al algo ante antes aunque como con contra cual cuando de del desde donde "
        "durante e el ella ellos en entre era es esa ese eso esta está este esto están "
        "fue ha había hasta hay la las le les lo los más me mi mientras muy nada ni no "
        "nos o otra otro para pero por porque que qué quien se sea ser si sí sin sobre "
        "son su sus también tan tanto te tiene todo todos tu un una uno unos y ya yo",
        "fi": "ei eivät ell että ennen he heidän hän hänen ja jo joka jonka jos jota joten "
        "kanssa koska kuin kuitenkin kun kuten ole oli olla olen olivat on ovat me mikä "
        "mitä mukaan mutta myös ne niiden niin nyt nämä ollut olisi se sekä sen siellä "
        "siinä sitä sitten tai tämä tämän tässä tätä vaan vain voi vielä yli",
        "fr": "a au aussi autre aux avec avait avant bien c car ce cela celle ces cet cette "
        "comme d dans de des donc du elle elles en encore entre est et été être eu fait "
        "il ils j je jusqu l la le les leur leurs lui m ma mais me même mes moi mon n ne "
        "ni nos notre nous on ont ou où par pas pendant peu plus pour puis qu quand que "
        "qui s sa sans se ses si son sont sous sur ta te tous tout très tu un une vers "
        "vous y à",
        "hi": "का की के को में से है हैं और पर यह वह ने भी एक तो ही था थी थे हो कि जो इस उस कर "
        "करने किया गया लिए साथ तक या नहीं अपने अपनी बाद कुछ सब हम आप मैं वे ये जब तब अब "
        "यहाँ वहाँ क्या कोई बहुत फिर द्वारा होता होती होने रहा रही रहे सकता",
        "hu": "a az és is hogy nem de egy ez azt ezt van volt lesz lett meg már még csak mint "
        "vagy ha el ki be fel le itt ott aki ami amely ahol amikor minden sem se arra "
        "erre ő ők én te mi ti maga nagyon után alatt között szerint által pedig illetve "
        "majd így úgy kell lehet",
        "id": "ada adalah akan aku anda apa atau bagi bahwa banyak beberapa belum bisa bukan "
        "dalam dan dapat dari dengan di dia hanya harus hingga ia ini itu jika juga kami "
        "karena ke kepada kita lagi lain lebih maka masih mereka namun oleh pada para "
        "saat saja sangat saya sebagai sebuah sedang seperti sudah telah tersebut tetapi "
        "tidak untuk yang",
        "it": "a ad agli ai al alla alle allo anche avere c che chi ci come con cui d da dagli "
        "dai dal dalla dalle degli dei del della delle dello di dopo dove e è ed era fra "
        "gli ha hanno i il in io l la le lei li lo loro lui ma me mi molto ne negli nei "
        "nel nella nelle non o per perché più poi prima quale quando quella quello questa "
        "questo se senza si sia solo sono sopra su sua sue sui sul sulla suo tra tu tutti "
        "tutto un una uno vi",
        "nl": "aan al als bij daar dan dat de der deze die dit doch doen door dus een en er ge "
        "geen had heb hebben heeft hem het hier hij hoe hun ik in is ja je kan kon maar "
        "me meer men met mij mijn na naar niet niets nog nu of om ons ook op over reeds "
        "te tegen toch toen tot u uit uw van veel voor want waren was wat we wel werd wij "
        "wil worden wordt zal ze zich zij zijn zo zonder zou",
        "no": "alle at av ble bli blir da de dem den denne der deres det dette di din du eller "
        "en enn er et etter for fra før ha hadde han hans har henne her hun hva hvis hvor "
        "i ikke inn jeg kan kunne man mange med meg men mer min mot når nå og også om opp "
        "oss over på seg selv sin skal skulle som så til under ut var ved vi vil ville "
        "være vært å",
        "pl": "a aby ale bardzo bez bo by był była było były być ci co czy dla do gdy gdzie go "
        "i ich ile im inne ja jak jako jednak jego jej jest jeszcze jeśli już kiedy kto "
        "która które który ma mi może można my na nad nam nas nie nich nim o od on ona "
        "one oni oraz po pod przed przez przy się są ta tak także tam te tego tej ten to "
        "tu tylko tym u w we więc wszystko z za ze że",
        "pt": "a à ao aos aquela aquele as às até com como da das de dela dele depois do dos e "
        "é ela ele eles em entre era essa esse esta está este eu foi foram há isso isto "
        "já lhe mais mas me mesmo meu minha muito na não nas nem no nos nós num numa o os "
        "ou para pela pelo pelos por quando que quem se sem ser seu seus só sua suas "
        "também te tem ter todos tu um uma você",
        "ru": "а без бы был была были было быть в вам вас весь во вот все всё всех вы где да "
        "даже для до его ее её если есть еще ещё же за здесь и из или им их к как ко "
        "когда кто ли либо мне может мы на над надо нас не него нее нет ни них но ну о об "
        "однако он она они оно от очень по под после при с со так также такой там те тем "
        "то того тоже той только том ты у уже хотя чего чей чем что чтобы эта эти это "
        "этого этой этом этот я",
        "sv": "alla allt att av blev bli blir de dem den denna deras dess det detta dig din du "
        "där då efter ej eller en er ett från för ha hade han hans har henne hennes hon "
        "hur här i icke inom inte jag ju kan kunde man med mellan men mig min mot mycket "
        "ni nu när någon något några och om oss på samma sedan sig sin sitt ska skulle "
        "som så till under upp ut vad var vara varit vi vid vilka vilken än är åt över",
        "tr": "acaba ama ancak bana bazı belki ben beni bir biri biz bu buna bunu da daha de "
        "defa değil diye dolayı en gibi hem hep hepsi her hiç için ile ise kadar ki kim "
        "mı mi mu mü nasıl ne neden nerede o olan olarak oldu olduğu olmak on ona onlar "
        "onu onun sanki siz şey şu tüm ve veya var ya yani yok çok çünkü",
    }
)


def languages_with_stop_words() -> frozenset[str]:
    """Return the ISO 639-1 codes of the languages with a list."""
    return frozenset(_STOP_WORDS)


def stop_words_of(language: str) -> frozenset[str]:
    """Return the stop words of a language (ISO 639-1 code) in lower case."""
    if language not in _STOP_WORDS:
        msg = f"No stop words for language {language!r}; give a list, or one of {[*_STOP_WORDS]}"
        raise DefinitionError(msg)
    return frozenset(_STOP_WORDS[language].split())
