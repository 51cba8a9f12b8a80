// Command relay is the least that can stand between Telegram and a model: poll,
// stream, edit, on the libraries that parley uses, with no agent, no database and
// nothing kept. `make bench` measures it beside the daemon, as the floor.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"
	openai "github.com/sashabaranov/go-openai"
)

// editInterval is the time between two edits of a message, as in parley.
const editInterval = time.Second

type relay struct {
	bot   *tgbotapi.BotAPI
	model *openai.Client
}

func main() {
	telegram, token, model := os.Args[1], os.Args[2], os.Args[3]
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, 1024
	client := &http.Client{Transport: transport}
	r := relay{bot: &tgbotapi.BotAPI{Token: token, Client: client}}
	r.bot.SetAPIEndpoint(telegram + "/bot%s/%s")
	config := openai.DefaultConfig("key")
	config.BaseURL, config.HTTPClient = model, client
	r.model = openai.NewClientWithConfig(config)
	r.poll()
}

func (r relay) poll() {
	var answering sync.WaitGroup
	defer answering.Wait()
	offset := 0
	for {
		resp, err := r.bot.MakeRequest("getUpdates", tgbotapi.Params{"timeout": "50", "offset": strconv.Itoa(offset), "allowed_updates": `["message"]`})
		if err != nil {
			fmt.Fprintln(os.Stderr, "poll:", err)
			return
		}
		var updates []tgbotapi.Update
		if err := json.Unmarshal(resp.Result, &updates); err != nil {
			fmt.Fprintln(os.Stderr, "poll:", err)
			return
		}
		for _, u := range updates {
			offset = u.UpdateID + 1
			answering.Go(func() {
				if err := r.answer(u.Message.Chat.ID, u.Message.Text); err != nil {
					fmt.Fprintln(os.Stderr, "answer:", err)
				}
			})
		}
	}
}

func (r relay) answer(chat int64, said string) error {
	stream, err := r.model.CreateChatCompletionStream(context.Background(), openai.ChatCompletionRequest{
		Model: "model", Messages: []openai.ChatCompletionMessage{{Role: "user", Content: said}},
	})
	if err != nil {
		return err
	}
	defer stream.Close()
	var text strings.Builder
	shown := time.Time{}
	message := 0
	for {
		chunk, err := stream.Recv()
		if err != nil {
			break // the end, or a failure that the missing final text will show
		}
		if len(chunk.Choices) == 0 || chunk.Choices[0].Delta.Content == "" {
			continue
		}
		text.WriteString(chunk.Choices[0].Delta.Content)
		if time.Since(shown) < editInterval {
			continue
		}
		if message, err = r.show(chat, message, text.String()); err != nil {
			return err
		}
		shown = time.Now()
	}
	_, err = r.show(chat, message, text.String())
	return err
}

// show posts a message, or edits it if it has an id.
func (r relay) show(chat int64, id int, text string) (int, error) {
	p, method := tgbotapi.Params{"chat_id": strconv.FormatInt(chat, 10), "text": text}, "sendMessage"
	if id != 0 {
		p["message_id"], method = strconv.Itoa(id), "editMessageText"
	}
	resp, err := r.bot.MakeRequest(method, p)
	if err != nil {
		return id, err
	}
	var m tgbotapi.Message
	err = json.Unmarshal(resp.Result, &m)
	return m.MessageID, err
}
